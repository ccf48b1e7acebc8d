"""The part of copying that runs in a Spark task: fetch, convert, produce, report."""
