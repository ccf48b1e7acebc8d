"""Key stores and trust stores: JKS, JCEKS, PKCS12 and PEM, recognised by their content."""
