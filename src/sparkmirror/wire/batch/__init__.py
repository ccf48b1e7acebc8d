"""Record batches as bytes: headers, records, checksums, compression."""
