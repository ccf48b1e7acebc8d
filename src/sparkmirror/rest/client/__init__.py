"""HTTP requests from this worker to other workers of its group."""
