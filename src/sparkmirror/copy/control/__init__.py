"""The control channel between tasks and the driver: messages, framing, encryption."""
