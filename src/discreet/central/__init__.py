"""Central privacy: a trusted curator holds the table and releases noisy statistics of it."""
