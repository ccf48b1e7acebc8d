"""HTTP requests to workers: from other workers of their group and from the command line."""
