"""`python -m torchwhy`: the command line."""

from torchwhy.cli import main

main()
