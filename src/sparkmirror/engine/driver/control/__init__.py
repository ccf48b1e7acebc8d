"""The control connections of a driver: the listener, the handshakes, the server."""
