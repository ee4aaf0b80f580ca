"""An ensemble of methods, weighted by left-out labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dcgst.errors import InputError
from dcgst.graph import UNKNOWN
from dcgst.methods.base import Method, check_settings, param
from dcgst.methods.ensemble.combination import (
    Combination,
    CombinedModel,
    Evidence,
    combine,
    pseudo_labels,
)
from dcgst.methods.ensemble.members import (
    STUDENT,
    MemberFit,
    Task,
    fit_members,
    fit_student,
    label_folds,
)
from dcgst.methods.networks import NeuralMethod, labeled_rows
from dcgst.methods.problem import Problem
from dcgst.methods.result import (
    AGREEMENT,
    LEFT_OUT,
    Result,
    results_without_stages,
    with_predictors,
    with_row_model,
)
from dcgst.methods.row_models import OwnFeatures, RowModel
from dcgst.registry import Registry

DEFAULT = "lp,em,gp,gcn,mlp,sign"

MIN_LABEL_SHARE = 0.5
"""Share of the labels of each class of the fit that another graph must have, so that labels are
propagated there."""

Member = str | Method
"""A method, or its name."""

SHARED = ("replicas", "device", "prior", "chunk_size")
"""Settings that the ensemble has for all members."""


@dataclass(eq=False, kw_only=True)
class Ensemble(Method):
    r"""Several methods, each fitted alone; their predictions are weighted by left-out labels.

    The given labels are divided into folds. Each member m is fitted to all labels, and to all but
    each fold; these fits are computed together. So most labels have a prediction that did not use
    them. With :math:`a_m` the accuracy of these predictions, the result is

    .. math:: \log P = \tau \textstyle\sum_m w_m\,\tau_m \log P_m + const,
              \qquad w_m \propto a_m^4

    The factors :math:`\tau_m` and :math:`\tau` maximize the likelihood of the left-out labels.
    The confident half of the predicted nodes of each class then are pseudo-labels for one more
    member, the student.

    Where training labels are concentrated in few regions of the graph, left-out labels flatter
    whoever copies them. There a training label counts less, the factors follow the agreement of
    the members instead, and EM, which models the distribution of all nodes, counts more
    (:func:`~dcgst.methods.ensemble.combination.combine`).

    Validation labels are trained on like the others. They are expected to be a random sample, so
    they count fully, and they also correct the class shares.

    Example:
        >>> from dcgst import load
        >>> from dcgst.methods import Ensemble
        >>> model = Ensemble(members="lp,em").fit(load("synthetic"))
        >>> sorted(model.member_weights_)
        ['em', 'lp', 'student']
    """

    name: ClassVar[str] = "ensemble"
    calibrated: ClassVar[bool] = True
    registry: ClassVar[Registry[type[Method]]]
    """Where the names of members are looked up."""

    members: str | Sequence[Member] = param(
        DEFAULT, "methods: names or package.module:Class, comma-separated; in Python also instances"
    )
    student: Member | None = param(
        "mlp", "method that is trained on pseudo-labels of the members, too; none: no such member"
    )
    folds: int = param(3, "parts of the labels that are left out in turn", low=2)
    train_on_validation: bool = param(
        True,
        "the validation labels are training labels, too; else they only set weights, scales and "
        "class shares",
    )
    random_validation: bool = param(
        True, "the validation nodes are a random sample, so estimate class shares"
    )

    @property
    def by_rows(self) -> bool:
        return all(member.by_rows for member in self.all_members().values())

    @property
    def fits_sample(self) -> bool:
        """On a sample of a large graph, the default members are used without those that need all
        edges.
        """
        student = self.create_student()
        default = list(self.create_members()) == DEFAULT.split(",")
        return self.by_rows or (default and (student is None or student.by_rows))

    def count_trainings(self, validation: bool = False) -> int:
        count = 0
        for name, member in self.all_members().items():
            if isinstance(member, NeuralMethod):
                count += member.count_trainings() * (1 if name == STUDENT else self.folds + 1)
        return max(1, count)

    def check_values(self) -> None:
        if not isinstance(self.members, str | Sequence):
            raise InputError(f"members must be methods, got {self.members!r}")
        check_settings(replace(self, members=DEFAULT, student=None))
        for setting, create in (("members", self.create_members), ("student", self.create_student)):
            try:
                create()
            except InputError as error:
                raise InputError(f"{setting}: {error}") from error
        for name, member in self.all_members().items():
            member.check_values()
            for setting in SHARED:
                if getattr(member, setting) != getattr(type(member), setting):
                    raise InputError(
                        f"{setting} of the member {name} has no effect; set it for the ensemble"
                    )

    def config(self) -> dict[str, Any]:
        """The settings as values that JSON can represent; instances become names and settings."""
        config = super().config()
        if not isinstance(self.members, str):
            config["members"] = [self._describe(own) for own in self.members]
        if self.student is not None:
            config["student"] = self._describe(self.student)
        return config

    def _describe(self, member: Member) -> Any:
        if isinstance(member, str):
            return member
        return {self.registry.name_of(type(member)): member.config()}

    @classmethod
    def from_stored(cls, settings: Mapping[str, Any]) -> Self:
        members, student = settings.get("members", DEFAULT), settings.get("student", "mlp")
        if isinstance(members, str):
            for name in members.split(","):
                cls.registry.known(name.strip())
        else:
            members = tuple(cls._restore(own) for own in members)
        student = None if student is None else cls._restore(student)
        return super().from_stored({**settings, "members": members, "student": student})

    @classmethod
    def _restore(cls, stored: Any) -> Member:
        """A member as :meth:`config` describes it."""
        if isinstance(stored, str):
            cls.registry.known(stored.strip())
            return stored
        ((name, settings),) = stored.items()
        return cls.registry.known(name).from_stored(settings)

    def create_members(self) -> dict[str, Method]:
        """The members by name, without the student; a second one of a name gets a number."""
        listed = self.members.split(",") if isinstance(self.members, str) else self.members
        found: dict[str, Method] = {}
        for entry in listed:
            if isinstance(entry, str) and not entry.strip():
                raise InputError(
                    f"a name is empty in {self.members!r}; name at least one method, and none "
                    "between two commas"
                )
            member = self._create(entry)
            name, number = member.name, 2
            while name in found or name == STUDENT:
                name, number = f"{member.name}-{number}", number + 1
            found[name] = member
        if not found:
            raise InputError("an ensemble needs at least one member")
        return found

    def create_student(self) -> Method | None:
        """The member that is trained on pseudo-labels, if there is one."""
        return None if self.student in (None, "none") else self._create(self.student)

    def all_members(self) -> dict[str, Method]:
        """The members and the student by name."""
        student = self.create_student()
        members = self.create_members()
        return members if student is None else {**members, STUDENT: student}

    def _create(self, entry: Member) -> Method:
        if isinstance(entry, str):
            return self.registry[entry.strip()]()
        if not isinstance(entry, Method):
            raise InputError(f"a member must be a name or a method, got {entry!r}")
        return entry

    def describe_members(self) -> dict[str, str]:
        """The first line of the docstring of each member."""
        found = {
            name: (type(member).__doc__ or "").strip().split("\n")[0]
            for name, member in self.create_members().items()
        }
        student = self.create_student()
        if student is not None:
            found[STUDENT] = f"{student.name}, trained on predictions of the others, too."
        return found

    def solve(self, problem: Problem) -> list[Result]:
        members, task = self.members_for(problem), self.make_task(problem)
        evidence = self.find_evidence(problem, task)
        clusters = [name for name, member in members.items() if member.models_all_nodes]
        fits = fit_members(members, task)
        found = combine(fits, evidence, problem.pool, clusters)
        student = self.create_student()
        if student is not None and (problem.graph.complete or student.by_rows):
            members[STUDENT] = student
            labels = pseudo_labels(found.log_proba, problem.pool)
            fits[STUDENT] = fit_student(student, task, labels, found.left_out)
            agreement = found.agreement  # the student learned from the others
            found = replace(combine(fits, evidence, problem.pool, clusters), agreement=agreement)
        results = self.make_results(problem, task, fits, found)
        if problem.graph.complete:
            return results
        rows = {name: with_scale(fits[name].row_model, member) for name, member in members.items()}
        return with_row_model(results, combined_model(task, found, rows), problem)

    def members_for(self, problem: Problem) -> dict[str, Method]:
        """The members; on a sample of a large graph, without those that need all edges."""
        members = self.create_members()
        if problem.graph.complete:
            return members
        return {name: member for name, member in members.items() if member.by_rows}

    def make_task(self, problem: Problem) -> Task:
        """What the members are fitted to: never with validation labels of their own."""
        hidden = replace(problem, val_labels=torch.full_like(problem.val_labels, -1))
        given = problem.train_on_validation() if self.train_on_validation else hidden
        random = (problem.val_labels >= 0) & self.train_on_validation
        folds = label_folds(given.train_labels, self.folds, problem.seeds, always=random)
        rows = labeled_rows(torch.maximum(problem.train_labels, problem.val_labels))
        return Task(given, folds, rows)

    def find_evidence(self, problem: Problem, task: Task) -> Evidence:
        """The labels that some fits of the members do not have."""
        validation = problem.val_labels[:, task.rows] >= 0
        left_out = task.folds[:, task.rows] >= 0
        return Evidence.of(
            torch.maximum(problem.train_labels, problem.val_labels)[:, task.rows],
            validation & self.random_validation,
            left_out if self.train_on_validation else left_out | validation,
            problem.trust,
        )

    def make_results(
        self, problem: Problem, task: Task, fits: Mapping[str, MemberFit], found: Combination
    ) -> list[Result]:
        """One result per fit. Validation nodes have the predictions without their labels."""
        proba = found.log_proba.exp()
        held_out = (problem.val_labels[:, task.rows] >= 0)[..., None]
        proba[:, task.rows] = torch.where(held_out, found.left_out.exp(), proba[:, task.rows])
        z = problem.graph.propagated["PageRank"].expand(problem.num_fits, -1, -1)
        reasons = [f"{len(fits)} members fitted"] * problem.num_fits
        results = results_without_stages(problem, proba, z, reasons)
        left_out = problem.train_labels.masked_fill(task.folds < 0, UNKNOWN)[:, task.rows]
        accuracy = left_out_accuracy(left_out, found.left_out).tolist()
        agreement = found.agreement.tolist()
        several = len(self.members_for(problem)) > 1
        results = [
            replace(
                result,
                member_weights={name: float(own[fit]) for name, own in found.weights.items()},
                expectation={
                    **({} if math.isnan(accuracy[fit]) else {LEFT_OUT: accuracy[fit]}),
                    **({AGREEMENT: agreement[fit]} if several else {}),
                },
            )
            for fit, result in enumerate(results)
        ]

        model = combined_model(task, found, {name: fit.model for name, fit in fits.items()})
        return with_predictors(results, model, problem)

    def models_on(self, result: Result, problem: Problem) -> Sequence[RowModel]:
        """The combined model of each replica.

        Members that propagate labels take part if each class has at least half as many labels in
        the other graph as in the fit; else they would predict the other classes.
        """
        checkpoint = problem.checkpoint
        found = []
        for number, model in enumerate(result.predictors):
            if not isinstance(model, CombinedModel):
                raise InputError("the stored model is not that of an ensemble; fit again")
            few = few_labels(model, problem.train_labels[0].numpy(force=True))
            members: dict[str, RowModel | None] = {}
            for name, member in self.all_members().items():
                if name not in model.members:  # it was left out of the fit
                    continue
                own = replace(
                    problem,
                    graph=problem.graph.scaled_by(member.scale_features),
                    checkpoint=checkpoint.within(f"{number}-{name}"),
                )
                absent = member.propagates_labels and few
                known = None if absent else member.model_on(model.members[name], own)
                members[name] = with_scale(known, member)
            if not any(members.values()):
                raise InputError(no_model(few, self.all_members()))
            found.append(replace(model, members=members))
        return found

    def members_without_model(self, result: Result, labels: NDArray[np.int64]) -> list[str]:
        absent: dict[str, None] = {}
        for model in result.predictors:
            if isinstance(model, CombinedModel):
                few = few_labels(model, labels)
                for name, member in self.all_members().items():
                    if name not in model.members:
                        continue
                    if few if member.propagates_labels else model.members[name] is None:
                        absent[name] = None
        return list(absent)

    def predicts_rows(self, result: Result) -> bool:
        members = self.all_members()
        fitted = {name for model in result.predictors for name in getattr(model, "members", ())}
        return bool(fitted) and all(members[name].by_rows for name in fitted)


def few_labels(model: CombinedModel, labels: NDArray[np.int64]) -> bool:
    """Whether a class has less than half as many labels in another graph as in the fit."""
    counts = model.label_counts[0].numpy(force=True)
    known = np.bincount(labels[labels != UNKNOWN], minlength=len(counts))
    return bool((known < counts * MIN_LABEL_SHARE).any())


def no_model(few: bool, members: Mapping[str, Method]) -> str:
    """Why no member predicts another graph, and what to do."""
    if few and any(member.propagates_labels for member in members.values()):
        return (
            "no member predicts another graph with so few labels: each class needs at least half "
            "as many as in the fit; or add a member with a model, such as gcn"
        )
    names = ", ".join(members)
    return f"no member has a model of another graph: {names}; add one that has, such as gcn"


def with_scale(model: RowModel | None, member: Method) -> RowModel | None:
    """The model of a member, which reads features as the member scales them."""
    return None if model is None else OwnFeatures(model, member.scale_features)


def combined_model(
    task: Task, found: Combination, models: Mapping[str, RowModel | None]
) -> CombinedModel:
    """The combination as a model of nodes, of the members' models by name."""
    counts = task.problem.label_counts()
    return CombinedModel(models, found.scales, found.weights, found.calibration, counts)


def left_out_accuracy(labels: Tensor, log_proba: Tensor) -> Tensor:
    """``(R,)`` accuracy of predictions ``(R, m, C)`` for labels ``(R, m)``, nan without labels."""
    right = (log_proba.argmax(-1) == labels) & (labels >= 0)
    return right.sum(1) / (labels >= 0).sum(1)
