"""`sparkmirror transform`: shows what transformations make of records, without mirroring any."""
