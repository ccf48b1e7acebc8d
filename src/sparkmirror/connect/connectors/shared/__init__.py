"""What the three mirror connectors share: configs, clients, schedules, tasks as threads."""
