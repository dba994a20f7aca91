"""What people look at: SVG charts, the single-file HTML report, plots for notebooks."""
