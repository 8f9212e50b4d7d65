"""Names for the work of replayed graphs, from recordings of their capture or of the same program without graphs."""
