"""Core classes: processors, chains and sums of processors, and waves."""
