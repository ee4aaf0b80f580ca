"""A local web page to label nodes in."""
