"""DC-GST: distribution consistency based graph self-training."""
