"""What is promised and what was spent: guarantees, rounding, the ledger, shuffling."""
