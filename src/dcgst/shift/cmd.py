"""Central moment discrepancy (Zellinger et al., ICLR 2017, https://arxiv.org/abs/1702.08811)."""

from __future__ import annotations

from math import comb

import torch
from torch import Tensor

from dcgst.features.columns import inverse_power_of_two


def cmd(
    source: Tensor,
    target: Tensor,
    source_weights: Tensor | None = None,
    target_weights: Tensor | None = None,
    *,
    moments: int = 5,
    support: float | Tensor | None = None,
) -> Tensor:
    r"""Central moment discrepancy (CMD) between two samples.

    .. math:: \frac{\lVert E(P) - E(Q)\rVert_2}{|b-a|}
              + \sum_{k=2}^{K} \frac{\lVert c_k(P) - c_k(Q)\rVert_2}{|b-a|^k}

    Args:
        source: ``(..., m, d)`` the first sample; leading axes are batch axes.
        target: ``(..., n, d)`` the second.
        source_weights: ``(..., m)``, not negative; a 0/1 mask selects a subset. Default: equal.
        target_weights: ``(..., n)``, likewise.
        moments: K, the highest moment.
        support: :math:`|b-a|`. Default: the range of all values of both samples, whatever their
            weights, treated as a constant. 1 omits the factor, as many implementations do.

    Returns:
        ``(...)``, zero for equal samples.

    Example:
        >>> cmd(torch.tensor([[0.0], [1.0]]), torch.tensor([[0.0], [1.0]]))
        tensor(0.)
        >>> cmd(torch.tensor([[0.0]]), torch.tensor([[1.0]]))  # only the means differ
        tensor(1.)
    """
    if support is None:
        support = value_range(source, target)
        # Scaled exactly to a range of about one: higher powers neither overflow nor vanish.
        scale = inverse_power_of_two(torch.where(support.isfinite(), support, 0.0))
        source, target = source * scale[..., None, None], target * scale[..., None, None]
        support = support * scale
    centered_source, mean_source, share_source = _center(source, source_weights)
    centered_target, mean_target, share_target = _center(target, target_weights)
    total: Tensor = torch.linalg.vector_norm(mean_source - mean_target, dim=-1) / support
    power_source, power_target = centered_source, centered_target
    for k in range(2, moments + 1):
        power_source = power_source * centered_source
        power_target = power_target * centered_target
        difference = _mean(power_source, share_source) - _mean(power_target, share_target)
        total = total + torch.linalg.vector_norm(difference, dim=-1) / support**k
    return total


class CMDFrom:
    """CMD of many samples from the same one, whose moments are computed once.

    The support is the range of its values.

    Args:
        target: ``(n, d)``.
        moments: the highest moment.

    Example:
        >>> target = torch.tensor([[0.0], [1.0], [4.0]])
        >>> float(CMDFrom(target)(target[:2])) == float(cmd(target[:2], target))
        True
    """

    def __init__(self, target: Tensor, moments: int = 5) -> None:
        self.support = value_range(target, target)
        self.mean = target.mean(0)
        self.central = self._central((target - self.mean) / self.support, moments)

    def __call__(self, sample: Tensor) -> Tensor:
        """The CMD of a sample ``(m, d)``, a scalar."""
        scaled = (sample - self.mean) / self.support
        mean = scaled.mean(0)
        central = self._central(scaled - mean, len(self.central) + 1)
        differences = torch.cat([mean[None], central - self.central])
        total: Tensor = torch.linalg.vector_norm(differences, dim=1).sum()
        return total

    @staticmethod
    def _central(centered: Tensor, moments: int) -> Tensor:
        """``(moments - 1, d)`` central moments from the second on."""
        power, means = centered, []
        for _ in range(moments - 1):
            power = power * centered
            means.append(power.mean(0))
        return torch.stack(means)


def labeled_shift(z: Tensor, labeled: Tensor, pool: Tensor, support: float | None = None) -> Tensor:
    """``(R,)`` CMD between labeled and pool nodes in a representation ``(R, n, d)``.

    Args:
        z: ``(R, n, d)``.
        labeled: ``(R, n)`` bool.
        pool: ``(R, n)`` bool; where it is empty, the shift is zero.
        support: :math:`|b-a|`, see :func:`cmd`.
    """
    distance = cmd(z, z, labeled.to(z.dtype), pool.to(z.dtype), support=support)
    return torch.where(pool.any(1), distance, 0.0)


def value_range(source: Tensor, target: Tensor) -> Tensor:
    """Largest minus smallest value ``(...)``, without gradient.

    It is infinite if all values are equal up to rounding: then the samples do not differ, and
    dividing by the range must not amplify rounding errors.
    """
    both = (source.detach(), target.detach())
    highest = torch.maximum(*(z.amax(dim=(-2, -1)) for z in both))
    lowest = torch.minimum(*(z.amin(dim=(-2, -1)) for z in both))
    noise = 8 * torch.finfo(source.dtype).eps * torch.maximum(highest.abs(), lowest.abs())
    return torch.where(highest - lowest > noise, highest - lowest, float("inf"))


class WeightedCMD:
    r"""CMD between weighted nodes and a fixed sample, as a function of the weights.

    The weighted nodes are joined by fixed members of weight one. Central moments follow from raw
    moments, which are linear in the weights: the powers are computed once, and a call costs one
    product with a ``(k, moments * d)`` matrix.

    Args:
        z: ``(R, n, d)`` the representation.
        nodes: ``(R, k)`` the nodes that carry the weights.
        target: ``(R, n)`` weights of the sample to compare with.
        fixed: ``(R, n)`` weights of the fixed members.
        moments: the highest moment.
        support: :math:`|b-a|`, see :func:`cmd`.
    """

    def __init__(
        self,
        z: Tensor,
        nodes: Tensor,
        *,
        target: Tensor,
        fixed: Tensor,
        moments: int = 5,
        support: float | None = None,
    ) -> None:
        self.moments, self.width = moments, z.shape[-1]
        # c_k = sum over j of (k over j) m_j (-mean)^(k-j)
        self.binomial = z.new_zeros(moments - 1, moments + 1, moments + 1)
        for k in range(2, moments + 1):
            for j in range(k + 1):
                self.binomial[k - 2, j, k - j] = comb(k, j)
        z = z.detach()
        scale = value_range(z, z) if support is None else z.new_full((len(z),), support)
        centered, _, share = _center(z, target)
        scaled = centered / scale[:, None, None]
        self.target = _raw_moments(share, scaled, moments)  # mean zero: raw moments are central
        members = (fixed > 0).any(0).nonzero().flatten()  # powers are needed for these only
        self.fixed_count = fixed.sum(1, keepdim=True)
        self.fixed_sum = fixed[:, None, members] @ _powers(scaled[:, members], moments)
        index = nodes[..., None].expand(-1, -1, self.width)
        self.powers = _powers(scaled.gather(1, index), moments)  # (R, k, moments * d)

    def __call__(self, weights: Tensor) -> Tensor:
        """``(R,)`` for weights ``(R, k)``; differentiable."""
        total = weights.sum(1, keepdim=True) + self.fixed_count
        sums = weights.unsqueeze(-2) @ self.powers + self.fixed_sum
        tiny = torch.finfo(weights.dtype).tiny
        raw = (sums.squeeze(-2) / total.clamp_min(tiny)).view(-1, self.moments, self.width)
        raw = torch.cat([torch.ones_like(raw[:, :1]), raw], dim=1)  # from the zeroth moment on
        minus = -raw[:, 1:2]
        shifts = torch.cat([torch.ones_like(minus), _powers(minus, self.moments, dim=1)], dim=1)
        central = torch.einsum("kji,rjd,rid->rkd", self.binomial, raw, shifts)
        differences = torch.cat([minus, central - self.target[:, 1:]], dim=1)
        distance: Tensor = torch.linalg.vector_norm(differences, dim=-1).sum(1)
        return distance


def weighted_mean(z: Tensor, weights: Tensor) -> Tensor:
    """``(..., d)`` mean of ``(..., n, d)`` under weights ``(..., n)``."""
    return _center(z, weights)[1]


def _center(z: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """The sample minus its weighted mean, that mean ``(..., d)``, and weights that sum to one."""
    if weights is None:
        weights = z.new_ones(z.shape[:-1])
    share = weights / weights.sum(-1, keepdim=True).clamp_min(torch.finfo(z.dtype).tiny)
    mean = _mean(z, share)
    return z - mean.unsqueeze(-2), mean, share


def _mean(z: Tensor, share: Tensor) -> Tensor:
    return (share.unsqueeze(-2) @ z).squeeze(-2)


def _powers(z: Tensor, moments: int, dim: int = -1) -> Tensor:
    """``z, z², …`` concatenated."""
    powers = [z]
    for _ in range(moments - 1):
        powers.append(powers[-1] * z)
    return torch.cat(powers, dim=dim)


def _raw_moments(share: Tensor, z: Tensor, moments: int) -> Tensor:
    """``(R, moments, d)`` raw moments, one power at a time."""
    power, means = z, [_mean(z, share)]
    for _ in range(moments - 1):
        power = power * z
        means.append(_mean(power, share))
    return torch.stack(means, dim=-2)
