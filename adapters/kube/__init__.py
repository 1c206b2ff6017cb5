"""Kubernetes: one gateway for requests, and the engines that stand on it.

`gateway` reaches a cluster and is the only module that knows kr8s; what can be asked through it stands in `reads` and
`operations`, and `exchange` is one request with its limits. `reflector` keeps a cache of one kind; `workqueue` orders
the keys that its changes mark. What decides in each of them is a pure machine in a module of its own (`kubeconfig`,
`errors`, `frames`, `watching`, `queueing`, `backoff`). None of these knows what a machine or a schedule is.
"""
