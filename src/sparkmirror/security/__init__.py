"""How clients and servers prove who they are: stores, TLS contexts, logins."""
