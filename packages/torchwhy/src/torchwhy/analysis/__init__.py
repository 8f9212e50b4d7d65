"""What a trace says, as typed data: what was recorded, where the time went, the verdict with its caveats."""
