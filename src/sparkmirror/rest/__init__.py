"""Connect's HTTP API; the only importer of the web framework. Knows not how things are done."""
