"""Records of fetched batches on their way through a connector's transformations."""
