"""Admin calls to one Kafka cluster, through wire's Router: topics, configs, ACLs, groups."""
