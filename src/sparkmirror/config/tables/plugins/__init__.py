"""Tables of the keys of plugins: converters, transforms, topic and group filters."""
