"""What the device computes, and how well."""
