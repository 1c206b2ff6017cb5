"""A real Prometheus from the distribution, and what stands around one: something to scrape, and a gate that wants a token."""
