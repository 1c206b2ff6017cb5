"""Kubernetes: one gateway for requests, and the engines that stand on it.

`gateway` makes requests and is the only module that knows kr8s; `reflector` keeps a cache of one kind; `workqueue`
orders the keys that its changes mark. What decides in each of them is a pure machine in a module of its own
(`kubeconfig`, `frames`, `watching`, `queueing`, `backoff`); nothing here knows what a machine or a schedule is.
"""
