"""One module for each command; `cli/main.py` lists them and imports only the one that runs."""
