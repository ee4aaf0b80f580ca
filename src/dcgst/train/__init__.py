"""How things are computed: random streams, training loop, checkpoints, devices, threads."""
