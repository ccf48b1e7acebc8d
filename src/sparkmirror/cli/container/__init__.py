"""What runs only in a container: the entry point of the image and its health check."""
