"""Files that travel: strict versioned documents, written atomically; locks between processes."""
