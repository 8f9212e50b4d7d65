"""Documents of typed blocks, which commands answer with, and the renderers that draw any document."""
