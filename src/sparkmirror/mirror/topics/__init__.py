"""Which topics are mirrored, under which names, with which configs, ACLs and tasks."""
