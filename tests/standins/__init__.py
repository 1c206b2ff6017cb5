"""What a real installation brings and these tests stand in for: Cluster API with its providers, and kubelets."""
