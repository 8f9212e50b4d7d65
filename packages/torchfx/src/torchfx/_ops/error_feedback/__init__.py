"""`torchfx_ext::error_feedback_forward`: a quantiser whose rounding errors come back through a filter."""
