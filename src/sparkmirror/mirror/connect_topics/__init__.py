"""Record formats of Connect's config, offsets and status topics."""
