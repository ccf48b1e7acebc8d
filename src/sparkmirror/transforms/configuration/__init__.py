"""From the config of a connector to a chain: validation, and the compiled stages."""
