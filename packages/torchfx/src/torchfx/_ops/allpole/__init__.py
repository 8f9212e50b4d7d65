"""`torchfx_ext::allpole_forward`: an all-pole filter with constant or time-varying coefficients, and its gradients."""
