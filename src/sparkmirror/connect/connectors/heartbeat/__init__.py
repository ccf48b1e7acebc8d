"""MirrorHeartbeatConnector and its task."""
