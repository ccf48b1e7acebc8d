"""The names that rule sets give Kafka's MBeans, and the MBeans that have no figures here."""
