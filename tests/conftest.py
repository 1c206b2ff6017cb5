"""What every test may use."""

pytest_plugins = [
    "tests.controlplane.pytest_plugin",
    "tests.clusterapi.pytest_plugin",
    "tests.node.pytest_plugin",
]
