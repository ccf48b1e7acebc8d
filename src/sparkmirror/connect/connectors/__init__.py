"""What MirrorMaker 2's three connectors do, and their tasks as far as they run in the worker."""
