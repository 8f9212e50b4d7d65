"""`python -m torchfx`: the command line."""

from torchfx.cli import main

main()
