"""The trust models side by side: the comparison and its page."""
