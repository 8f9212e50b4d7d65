"""Audio programs: torchfx's operators as they appear in a trace, and audio files read in the loop."""
