"""What numba compiles: the loops of the fast engine, sixteen numbers at a time."""
