"""The `5spot-agent` command: notices that a program its owner cares about has started."""
