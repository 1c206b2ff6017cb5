"""Programs that tests run, built from public Go modules and kept on the machine."""
