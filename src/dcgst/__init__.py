"""Node classification from few, unrepresentative labels."""

__version__ = "0.1.0"
