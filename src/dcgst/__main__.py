"""``python -m dcgst``: the command line."""

from dcgst.cli import main

if __name__ == "__main__":
    main()
