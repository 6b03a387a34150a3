"""Kernel tests: do two samples differ, do two variables depend, does a sample fit a model?"""
