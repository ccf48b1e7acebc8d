"""Configuration: files, ConfigDef tables, validation, config providers. Standard library only."""
