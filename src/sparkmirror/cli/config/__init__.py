"""`sparkmirror config`: lists, explains and validates configurations."""
