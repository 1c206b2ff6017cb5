"""A real node for tests: kubelet, containerd, runc and CNI, joined to a control plane of `tests.controlplane`.

Root on Linux is needed, Go for what is built, and three packages of the distribution: `runc`, `containernetworking-plugins`
and `busybox-static`.

`pytest_plugin` has the fixtures; `node.Node` is the thing itself; `host` is the process that everything of a node descends
from; `binaries` finds the programs; `hosts` joins nodes as the stand-in provider asks for them.
"""
