"""How a value is shown: terminal, notebook, SVG charts, plots."""
