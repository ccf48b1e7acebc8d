"""What may be said: properties files, providers, ConfigDef tables, flows. Standard library only."""
