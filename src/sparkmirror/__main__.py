"""`python -m sparkmirror` is the `sparkmirror` command."""

from sparkmirror.cli.main import main

if __name__ == "__main__":
    main()
