"""What a forked process of `tests/warm.py` runs for `torchwhy try`."""

from torchwhy.tuning.observed_run import main

main()
