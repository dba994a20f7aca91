"""The experiments of the papers, one module per paper, with our methods beside theirs."""
