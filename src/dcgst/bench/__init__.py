"""Every method under one protocol."""
