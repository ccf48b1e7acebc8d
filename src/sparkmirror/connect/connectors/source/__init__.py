"""MirrorSourceConnector: topics, their creation, and the copy job of its tasks."""
