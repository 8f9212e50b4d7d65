"""Family A, trust: whether a trace can be believed, and what it cannot show."""
