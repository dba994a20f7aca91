"""What all HTTP servers of the package share: limits of time and size, TLS."""
