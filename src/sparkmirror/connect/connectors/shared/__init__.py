"""Shared by the three connectors: configs, clients, schedules, tasks as threads."""
