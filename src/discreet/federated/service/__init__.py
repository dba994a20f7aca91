"""The parties as programs: the collector's server, the connection to it, what lies on disk."""
