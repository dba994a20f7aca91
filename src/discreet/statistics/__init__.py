"""Noisy counts and moments with their variances, and how a model scores by them."""
