"""Changes by what they concern; `tuning.catalogue` finds them in these files."""
