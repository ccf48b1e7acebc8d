"""MirrorMaker 2's three connectors, and the tasks that run as threads of the worker."""
