"""Central moment discrepancy (Zellinger et al., 2019)."""

from __future__ import annotations

import torch
from torch import Tensor


def cmd(
    source: Tensor,
    target: Tensor,
    source_weights: Tensor | None = None,
    target_weights: Tensor | None = None,
    *,
    moments: int = 5,
    support: float | Tensor | None = None,
) -> Tensor:
    r"""How far two samples are apart, by their mean and central moments.

    .. math:: \frac{\lVert E(P) - E(Q)\rVert_2}{|b-a|}
              + \sum_{k=2}^{K} \frac{\lVert c_k(P) - c_k(Q)\rVert_2}{|b-a|^k}

    Args:
        source: ``(..., m, d)`` the first sample; leading axes are computed side by side.
        target: ``(..., n, d)`` the second.
        source_weights: ``(..., m)``, not negative; a 0/1 mask picks a subset. Default: all equal.
        target_weights: ``(..., n)``, likewise.
        moments: K, the highest moment.
        support: :math:`|b-a|`. By default the range of all values of both samples, whatever their
            weights, taken as a constant; 1 drops the factor, as many implementations do.

    Returns:
        ``(...)``, zero for equal samples.
    """
    if support is None:
        support = _range(source, target)
    centred_source, mean_source, share_source = _centre(source, source_weights)
    centred_target, mean_target, share_target = _centre(target, target_weights)
    total: Tensor = torch.linalg.vector_norm(mean_source - mean_target, dim=-1) / support
    power_source, power_target = centred_source, centred_target
    for k in range(2, moments + 1):
        power_source = power_source * centred_source
        power_target = power_target * centred_target
        gap = _mean(power_source, share_source) - _mean(power_target, share_target)
        total = total + torch.linalg.vector_norm(gap, dim=-1) / support**k
    return total


def _centre(z: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """The sample around its weighted mean, that mean ``(..., d)``, and weights that sum to one."""
    if weights is None:
        weights = z.new_ones(z.shape[:-1])
    share = weights / weights.sum(-1, keepdim=True)
    mean = _mean(z, share)
    return z - mean.unsqueeze(-2), mean, share


def _mean(z: Tensor, share: Tensor) -> Tensor:
    return (share.unsqueeze(-2) @ z).squeeze(-2)


def _range(source: Tensor, target: Tensor) -> Tensor:
    """Largest minus smallest value ``(...)``, a constant."""
    both = (source.detach(), target.detach())
    highest = torch.maximum(*(z.amax(dim=(-2, -1)) for z in both))
    lowest = torch.minimum(*(z.amin(dim=(-2, -1)) for z in both))
    return (highest - lowest).clamp_min(torch.finfo(source.dtype).tiny ** 0.125)
