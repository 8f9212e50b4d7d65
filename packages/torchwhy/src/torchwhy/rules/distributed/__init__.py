"""Several ranks or devices: what communication costs, and how the work is spread."""
