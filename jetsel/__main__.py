"""`python -m jetsel` and the `jetsel` command."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
    from jetsel.cli.app import app

    app(prog_name="jetsel")


if __name__ == "__main__":
    main()
