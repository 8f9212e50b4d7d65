"""Jobs of many ranks: a folder with one trace per rank, read in parallel, one small summary kept of each."""
