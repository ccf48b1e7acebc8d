"""SASL: the exchange with a broker, and its mechanisms."""
