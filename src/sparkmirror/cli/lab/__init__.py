"""`sparkmirror lab`: Kafka clusters on this computer, by command."""
