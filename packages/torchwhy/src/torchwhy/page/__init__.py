"""The report page: one self-contained HTML file with a timeline that a browser draws."""
