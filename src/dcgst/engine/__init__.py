"""How tensors are computed: sparse products, random streams, the training loop. No method here."""
