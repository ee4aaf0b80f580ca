"""Central moment discrepancy (Zellinger et al., 2019)."""

from __future__ import annotations

from math import comb

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
    share = weights / weights.sum(-1, keepdim=True).clamp_min(torch.finfo(z.dtype).tiny)
    mean = _mean(z, share)
    return z - mean.unsqueeze(-2), mean, share


def _mean(z: Tensor, share: Tensor) -> Tensor:
    return (share.unsqueeze(-2) @ z).squeeze(-2)


def _range(source: Tensor, target: Tensor) -> Tensor:
    """Largest minus smallest value ``(...)``, a constant; without end where all values are one.

    Then nothing is far from anything, and rounding errors must not be scaled up.
    """
    both = (source.detach(), target.detach())
    highest = torch.maximum(*(z.amax(dim=(-2, -1)) for z in both))
    lowest = torch.minimum(*(z.amin(dim=(-2, -1)) for z in both))
    spread = (highest - lowest).clamp_min(torch.finfo(source.dtype).tiny ** 0.125)
    return torch.where(highest > lowest, spread, float("inf"))


def farthest(z: Tensor, labeled: Tensor, pool: Tensor, count: int) -> Tensor:
    """The nodes most responsible for the shift between labeled and pool nodes.

    As a sample, a single node differs from any other node in its mean only: its CMD to a sample
    grows with its distance to that sample's mean. Half of the nodes are labeled ones far from the
    pool, as far as there are so many; the others are pool nodes far from the labeled ones.

    Args:
        z: ``(R, n, d)``.
        labeled: ``(R, n)`` bool.
        pool: ``(R, n)`` bool.
        count: how many nodes.

    Returns:
        ``(R, count)`` nodes.
    """
    n = z.shape[1]
    places = []
    for members, others in ((labeled, pool), (pool, labeled)):
        _, mean, _ = _centre(z, others.to(z.dtype))
        distance = (z - mean.unsqueeze(-2)).square().sum(-1).masked_fill(~members, -1)
        order = distance.argsort(dim=1, descending=True, stable=True)
        place = torch.arange(n, device=z.device).expand_as(order)
        ranked = torch.empty_like(order).scatter(1, order, place)
        places.append(ranked.masked_fill(~members, 2 * n))
    first = torch.where(places[0] < count // 2, places[0], 2 * n)
    return torch.minimum(first, places[1] + count // 2).argsort(dim=1, stable=True)[:, :count]


class WeightedCMD:
    r"""CMD between nodes under weights that are yet to be found, and a fixed sample.

    The weighted nodes are joined by a fixed set, each of whose members counts one. The central
    moments follow from the raw ones, and those are linear in the weights: the powers are taken
    once, and a call costs one product with a ``(k, moments * d)`` matrix.

    Args:
        z: ``(R, n, d)`` the representation.
        nodes: ``(R, k)`` which nodes carry the weights.
        target: ``(R, n)`` weights of the sample to be near to.
        fixed: ``(R, n)`` weights of the nodes that belong to the other sample anyway.
        moments: the highest moment.
        support: :math:`|b-a|`; by default the range of ``z``.
    """

    def __init__(
        self,
        z: Tensor,
        nodes: Tensor,
        *,
        target: Tensor,
        fixed: Tensor,
        moments: int = 5,
        support: float | Tensor | None = None,
    ) -> None:
        self.moments, self.width = moments, z.shape[-1]
        # c_k = sum over j of (k over j) m_j (-mean)^(k-j)
        self.binomial = z.new_zeros(moments - 1, moments + 1, moments + 1)
        for k in range(2, moments + 1):
            for j in range(k + 1):
                self.binomial[k - 2, j, k - j] = comb(k, j)
        z = z.detach()
        scale = _range(z, z) if support is None else z.new_tensor(support).expand(z.shape[0])
        centred, _, share = _centre(z, target)
        scaled = centred / scale[:, None, None]
        self.target = _moments(share, scaled, moments)  # mean zero, so raw moments are central
        members = fixed > 0
        held = members.any(0).nonzero().squeeze(-1)  # few: only they are raised to powers
        self.fixed_count = fixed.sum(-1, keepdim=True)
        self.fixed_sum = fixed[:, None, held] @ _powers(scaled[:, held], moments)
        index = nodes[..., None].expand(-1, -1, self.width)
        self.powers = _powers(scaled.gather(1, index), moments)  # (R, k, moments * d)

    def __call__(self, weights: Tensor) -> Tensor:
        """``(R,)`` for weights ``(R, k)``; differentiable."""
        total = weights.sum(-1, keepdim=True) + self.fixed_count
        sums = weights.unsqueeze(-2) @ self.powers + self.fixed_sum
        tiny = torch.finfo(weights.dtype).tiny
        raw = (sums.squeeze(-2) / total.clamp_min(tiny)).view(-1, self.moments, self.width)
        raw = torch.cat([torch.ones_like(raw[:, :1]), raw], dim=1)  # from the zeroth moment on
        minus = -raw[:, 1:2]
        shifts = torch.cat([torch.ones_like(minus), _powers(minus, self.moments, dim=1)], dim=1)
        central = torch.einsum("kji,rjd,rid->rkd", self.binomial, raw, shifts)
        gaps = torch.cat([minus, central - self.target[:, 1:]], dim=1)
        distance: Tensor = torch.linalg.vector_norm(gaps, dim=-1).sum(-1)
        return distance


def _powers(z: Tensor, moments: int, dim: int = -1) -> Tensor:
    """``z, z², …`` side by side."""
    powers = [z]
    for _ in range(moments - 1):
        powers.append(powers[-1] * z)
    return torch.cat(powers, dim=dim)


def _moments(share: Tensor, z: Tensor, moments: int) -> Tensor:
    """``(R, moments, d)`` raw moments, one power at a time."""
    power, means = z, [_mean(z, share)]
    for _ in range(moments - 1):
        power = power * z
        means.append(_mean(power, share))
    return torch.stack(means, dim=-2)
