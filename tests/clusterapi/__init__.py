"""A real Cluster API for tests: its core manager with its own CRDs, in a control plane of `tests.controlplane`.

What it manages hosts with is stood in for by `tests.standins`: the infrastructure and bootstrap providers, and kubelets.
`pytest_plugin` has the fixtures; `manager.ClusterApi` is the thing itself; `binaries` finds its program.
"""
