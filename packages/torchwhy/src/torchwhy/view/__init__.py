"""Show a trace in the viewer of another project, in the browser: `torchwhy view`."""
