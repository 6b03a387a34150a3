"""Pre-image solvers: values that hold settings and no data."""
