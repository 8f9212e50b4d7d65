"""Rules of torchwhy about audio programs: torchfx's operators as traces show them, and audio files read in the loop.

torchwhy finds this package by the entry points `torchwhy.rules` and `torchwhy.vocabulary`; torchfx never imports it.
"""
