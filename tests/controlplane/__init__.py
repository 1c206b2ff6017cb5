"""A real Kubernetes control plane for tests: etcd, kube-apiserver and kube-controller-manager.

Three processes of this machine on loopback ports, one temporary folder, nothing left behind. There is no kubelet,
no scheduler and no network: pods never run unless a test plays the kubelet.

`pytest_plugin` has the fixtures; `controlplane.ControlPlane` is the thing itself; `binaries` finds its programs.
"""
