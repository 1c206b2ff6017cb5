"""What every test may use."""

from hypothesis import HealthCheck, settings

pytest_plugins = [
    "tests.gobuild.pytest_plugin",
    "tests.controlplane.pytest_plugin",
    "tests.clusterapi.pytest_plugin",
    "tests.node.pytest_plugin",
    "tests.prometheus.pytest_plugin",
]

# On a machine that has much to do an example takes as long as it takes: no test asks how long.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")
