"""The demonstration behind `torchfx demo`: a recording is made, filtered, timed and checked."""
