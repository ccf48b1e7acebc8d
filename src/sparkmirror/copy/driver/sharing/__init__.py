"""What conductors of several workers need to share one connector."""
