"""MirrorCheckpointConnector and its task: group offsets translated to the target."""
