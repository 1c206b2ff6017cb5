"""Prometheus: asks its HTTP API one question, from inside a cluster and in a tenant's name."""

from fivespot.adapters.prometheus.client import Prometheus

__all__ = ["Prometheus"]
