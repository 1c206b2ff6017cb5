"""What a running process shows of itself: logs, metrics, and whether it is alive and ready."""
