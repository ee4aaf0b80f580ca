"""An ensemble of methods, weighted by left-out labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from dcgst.errors import InputError
from dcgst.graph import UNKNOWN
from dcgst.methods.core.base import Method
from dcgst.methods.core.params import param
from dcgst.methods.core.problem import Problem
from dcgst.methods.core.result import LEFT_OUT, Result, results_without_stages, with_predictors
from dcgst.methods.ensemble.members import SMALLEST, MemberFit, fit_member, label_folds
from dcgst.methods.ensemble.pool import Evidence, Pool, PooledModel, combine
from dcgst.registry import Registry

DEFAULT = "lp,em,gp,gcn,appnp,mlp,cs,sign"


@dataclass(eq=False, kw_only=True)
class Ensemble(Method):
    r"""Several methods, each fitted alone; their predictions are weighted by left-out labels.

    The given labels are divided into folds. Each member m is fitted to all labels, and to all but
    each fold; these fits are computed together. So every label has a prediction that did not use
    it. With :math:`a_m` the accuracy of these predictions, the result is

    .. math:: \log P = \tau \textstyle\sum_m w_m\,\tau_m \log P_m + const,
              \qquad w_m \propto a_m^4

    The factors :math:`\tau_m` and :math:`\tau` maximize the likelihood of the left-out labels.

    Validation labels are given labels like the others. They are expected to be a random sample, so
    they also correct the class shares.

    Example:
        >>> from dcgst import load
        >>> from dcgst.methods import Ensemble
        >>> model = Ensemble(members="lp,em").fit(load("synthetic"))
        >>> sorted(model.expert_weights_)
        ['em', 'lp']
    """

    name: ClassVar[str] = "ensemble"
    registry: ClassVar[Registry[type[Method]]]
    """Where the names of members are looked up."""

    members: str | Sequence[str | Method] = param(
        DEFAULT, "methods: names or package.module:Class, comma-separated; in Python also instances"
    )
    folds: int = param(5, "parts of the labels that are left out in turn", low=2)
    random_validation: bool = param(
        True, "the validation nodes are a random sample, so estimate class shares"
    )

    @property
    def calibrated(self) -> bool:
        return True

    def count_trainings(self, validation: bool = False) -> int:
        return sum(member.count_trainings() for member in self.create_members().values())

    def check_values(self) -> None:
        members = self.members
        replace(self, members=DEFAULT)._check_plain_values()
        if not isinstance(members, str | Sequence):
            raise InputError(f"members must be methods, got {members!r}")
        for member in self.create_members().values():
            member.check_values()

    def _check_plain_values(self) -> None:
        super().check_values()

    def config(self) -> dict[str, Any]:
        """The settings as values that JSON can represent; instances become names and settings."""
        config = super().config()
        if not isinstance(self.members, str):
            config["members"] = [
                member if isinstance(member, str) else {member.name: member.config()}
                for member in self.members
            ]
        return config

    def create_members(self) -> dict[str, Method]:
        """The members by name; a second one of the same name gets a number."""
        listed = self.members.split(",") if isinstance(self.members, str) else self.members
        found: dict[str, Method] = {}
        for entry in listed:
            member = self.registry[entry.strip()]() if isinstance(entry, str) else entry
            if not isinstance(member, Method):
                raise InputError(f"a member must be a name or a method, got {entry!r}")
            name, number = member.name, 2
            while name in found:
                name, number = f"{member.name}-{number}", number + 1
            found[name] = member
        if not found:
            raise InputError("an ensemble needs at least one member")
        return found

    def solve(self, problem: Problem) -> list[Result]:
        every = problem.train_on_validation()
        folds = label_folds(every.train_labels, self.folds, problem.seeds)
        fits = {
            name: fit_member(name, member, every, folds)
            for name, member in self.create_members().items()
        }
        counts = (folds != UNKNOWN).to(torch.float32)
        random = problem.val_labels if self.random_validation else None
        pool = combine(fits, Evidence(every.train_labels, counts), problem.pool, random)
        return self.results(problem, pool, fits)

    def results(self, problem: Problem, pool: Pool, fits: Mapping[str, MemberFit]) -> list[Result]:
        """One result per fit. Validation nodes have the predictions without their labels."""
        held_out = (problem.val_labels >= 0)[..., None]
        proba = torch.where(held_out, pool.left_out, pool.log_proba).exp()
        z = problem.graph.propagated["PageRank"].expand(problem.num_fits, -1, -1)
        reasons = [f"{len(fits)} members fitted"] * problem.num_fits
        results = results_without_stages(problem, proba, z, reasons)
        accuracy = self.left_out_accuracy(problem, pool)
        results = [
            replace(
                result,
                expert_weights={name: float(own[fit]) for name, own in pool.weights.items()},
                expectation={LEFT_OUT: accuracy[fit]},
            )
            for fit, result in enumerate(results)
        ]
        models = {name: fit.model() for name, fit in fits.items()}
        known = {name: model for name, model in models.items() if model is not None}
        if not known:
            return results
        model = PooledModel(known, pool.scales, pool.weights, pool.calibration, SMALLEST)
        return with_predictors(results, model, problem)

    def left_out_accuracy(self, problem: Problem, pool: Pool) -> list[float]:
        """Accuracy of the combined prediction on left-out training labels."""
        labels = problem.train_labels
        right = (pool.left_out.argmax(-1) == labels) & (labels >= 0)
        share: Tensor = right.sum(1) / (labels >= 0).sum(1)
        return [float(value) for value in np.asarray(share.cpu())]
