"""The threads of a worker: the herder's, one serial executor per connector, and their watchdog."""
