"""The files that operators write: .properties, mm2.properties, worker files."""
