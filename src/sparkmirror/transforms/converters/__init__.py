"""Connect's converters: between the bytes of a record and Connect's data."""
