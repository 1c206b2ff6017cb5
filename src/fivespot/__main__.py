"""`python -m fivespot` is the `5spot` command."""

from fivespot.cli.main import main

if __name__ == "__main__":
    main()
