"""Programs of the parties: the collector's server, its client, and state folders on disk."""
