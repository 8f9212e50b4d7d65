"""What a command answers as a document of typed blocks, and the renderers that draw any document."""
