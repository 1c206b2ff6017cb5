"""What the node agent needs of Linux."""
