"""Sums: kernel sums, their derivatives and Gram matrices, and the engines that compute them."""
