"""What every client of ours has to know of addresses and sockets, whatever it talks to."""
