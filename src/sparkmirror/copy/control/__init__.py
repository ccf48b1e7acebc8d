"""The control connection between tasks and the driver: messages, framing, encryption."""
