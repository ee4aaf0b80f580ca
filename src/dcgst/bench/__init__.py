"""Benchmarks: run every method under one protocol, and reproduce the paper's results."""
