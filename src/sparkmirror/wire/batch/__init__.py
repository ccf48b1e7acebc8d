"""Record batches as bytes: headers, checksums, compression, lanes."""
