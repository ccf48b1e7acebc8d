"""The ZooKeeper of clusters whose Kafka version needs one."""
