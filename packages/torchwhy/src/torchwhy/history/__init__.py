"""Runs over time: a store of them, the commits at which they changed, and the search for one such commit."""
