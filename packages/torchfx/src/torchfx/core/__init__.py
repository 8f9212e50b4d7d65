"""The audio half's core: processors, chains and sums of them, and the waves that flow through."""
