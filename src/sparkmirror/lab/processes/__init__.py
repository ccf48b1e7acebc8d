"""Processes, ports and locks of the lab, and the reaper that leaves nothing behind."""
