"""Training, validation and pool nodes: given by the user, or drawn by a sampler."""

from dcgst.splits.samplers import (
    SAMPLERS,
    Request,
    Sampler,
    register_sampler,
    sample,
    sample_by_degree,
    sample_by_ppr,
    sample_released,
    sample_uniform,
)
from dcgst.splits.split import Split

SAMPLERS.register("uniform", sample_uniform)
SAMPLERS.register("degree", sample_by_degree)
SAMPLERS.register("ppr-s", sample_by_ppr)
SAMPLERS.register("released", sample_released)

__all__ = ["SAMPLERS", "Request", "Sampler", "Split", "register_sampler", "sample"]
