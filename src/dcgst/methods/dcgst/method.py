"""Distribution consistency based graph self-training (Wang et al., WSDM 2024)."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from dcgst.engine.training import BestState, cross_entropy
from dcgst.errors import InputError
from dcgst.graph import UNKNOWN
from dcgst.methods.core.network import Network
from dcgst.methods.core.problem import Problem
from dcgst.methods.core.result import Result, with_predictors
from dcgst.methods.core.row_models import RowModel
from dcgst.methods.core.self_training import SelfTraining
from dcgst.methods.core.storage import stored
from dcgst.methods.core.trace import NOT_LABELED
from dcgst.methods.dcgst.candidates import (
    Candidates,
    confident_half,
    find_candidates,
)
from dcgst.methods.dcgst.experts import GP_STUDENT, STUDENT, Evidence, Experts
from dcgst.methods.dcgst.pool_model import PoolModel
from dcgst.methods.dcgst.settings import Settings
from dcgst.methods.dcgst.teacher import EdgeSettings, Teacher
from dcgst.methods.em import EM
from dcgst.methods.gaussian_process import learn_pseudo_labels
from dcgst.methods.gcn import GCN
from dcgst.nn.base import BACKBONES
from dcgst.shift.selection import SelectionObjective, relaxed_selection

NETWORKS = 2
"""Experts that are networks: GCN and MLP. The third is the teacher."""


@dataclass(eq=False, kw_only=True)
class DCGST(Settings):
    r"""Self-training that selects the pseudo-labels which minimize the distribution shift.

    Each stage has two steps. First, a teacher is trained on training labels and pseudo-labels,
    jointly with an edge predictor that samples graph variants in which labeled nodes (training
    labels and pseudo-labels) and the pool are similarly distributed. Second, pseudo-labels are
    selected: of the K most confident nodes per class, the half C' that minimizes

    .. math:: D(Z_U, Z_{C' \cup V_L}) - \gamma\,NER(N(C'))

    the shift D (CMD) between pool U and labeled nodes, with training labels :math:`V_L`, minus the
    neighborhood entropy reduction. K starts at the mean number of training labels per class and is
    multiplied by 1 + λ after each stage. Stages end when the shift has had no new minimum for
    ``stage_patience`` stages, when every pool node has a pseudo-label, or after ``max_stages``.
    Then a student is trained on the last labels and the original graph.

    The ``paper/`` presets are this method with the published weights and learning rate. The default
    adds experts: simple methods, each fitted alone. Their predictions and those of the teacher are
    combined (:class:`~dcgst.methods.dcgst.experts.Experts`), and the combined prediction chooses
    the candidates and is the result. Its teacher uses the original graph, not variants.
    docs/methods/dcgst.md explains the departures.

    Paper: https://doi.org/10.1145/3616855.3635793

    Example:
        >>> from dcgst import DCGST, load
        >>> graph = load("synthetic")
        >>> model = DCGST(epochs=20, max_stages=2, student_epochs=10).fit(graph)
        >>> model.labels_.shape, model.candidates_.dtype.names[:4]
        ((1200,), ('replica', 'stage', 'node', 'label'))
    """

    name: ClassVar[str] = "dcgst"

    def count_trainings(self, validation: bool = False) -> int:
        networks = 1 + (NETWORKS if self.experts else 0)  # the teacher, and experts
        refit = self.experts and self.refit and validation
        return networks * (2 if refit else 1) + self.max_stages + 1

    @property
    def calibrated(self) -> bool:
        return self.experts

    @property
    def fits_sample(self) -> bool:
        return self.experts and BACKBONES.resolve(self.backbone).hops == 0

    @property
    def trains_on_validation(self) -> bool:
        return self.experts and self.refit

    def check(self) -> None:
        super().check()
        if self.edge_predictor and BACKBONES.resolve(self.backbone).hops == 0:
            raise InputError(
                "edge_predictor has no effect on a network without edges; set backbone=gcn"
            )

    def solve(self, problem: Problem) -> list[Result]:
        if not self.experts:
            return self.self_train(problem)[0]
        # No network of the first fit sees the validation labels, so that they are evidence about
        # it. If a second fit follows, the first needs no stages.
        hidden = replace(problem, val_labels=torch.full_like(problem.val_labels, UNKNOWN))
        refit = self.refit and bool(problem.has_validation.any())
        first = replace(self, max_stages=0) if refit else self
        results, evidence = first.self_train(hidden, problem.val_labels)
        given = torch.maximum(problem.train_labels, problem.val_labels).numpy(force=True)
        results = [replace(r, given=own) for r, own in zip(results, given, strict=True)]
        if not refit:
            return results
        checkpoint = problem.checkpoint.within("refit")
        again = replace(problem.train_on_validation(), checkpoint=checkpoint)
        refitted, _ = self.self_train(again, problem.val_labels, evidence)
        # Validation nodes keep the predictions that did not use their labels.
        held_out = (problem.val_labels >= 0).numpy(force=True)
        return [
            replace(
                new,
                proba=np.where(val[:, None], old.proba, new.proba),
                labeled_stage=np.where(val, NOT_LABELED, new.labeled_stage),
            )
            for new, old, val in zip(refitted, results, held_out, strict=True)
        ]

    def self_train(
        self,
        problem: Problem,
        val_labels: Tensor | None = None,
        evidence: Evidence | None = None,
    ) -> tuple[list[Result], Evidence | None]:
        """Algorithm 1; returns the results and what the validation labels say about experts.

        Args:
            problem: the input.
            val_labels: ``(R, n)`` labels that determine the weights of the experts.
            evidence: of an earlier fit, used instead of ``val_labels``.
        """
        # Line 2, the partition into training and validation nodes, is in ``problem``.
        # Line 3: pretrain the teacher.
        teacher = self.create_teacher(problem)
        teacher.pretrain(self.training_options)
        output = teacher.predict()
        pretrained = copy.deepcopy(teacher.network.model)
        experts = None
        if val_labels is not None:  # departure 6
            experts = Experts(
                problem,
                output.logits,
                BACKBONES.name_of(type(pretrained)),
                val_labels,
                evidence=evidence,
                estimate_shares=self.random_validation,
            )
        state = SelfTraining(
            problem,
            output.embedding,
            max_stages=self.max_stages,
            patience=self.stage_patience,
            accumulate=self.accumulate,
        )
        best = BestState(list(teacher.network.model.parameters()))
        stage_options = replace(self.training_options, epochs=self.stage_epochs, patience=None)
        num_candidates = (problem.train_labels >= 0).sum(1) / problem.num_classes  # K
        while bool(state.active.any()):  # line 4
            # Step 1, line 6: train the teacher, jointly with the edge predictor (Eq. 8).
            teacher.update_pairs(output, state.labels)
            teacher.train(state.labels, stage_options, state.stage, state.active)
            output = teacher.predict()  # departure 5: on the original graph
            val_loss = cross_entropy(output.logits, problem.val_labels)
            without_validation = ~problem.has_validation
            best.update(state.stage, val_loss, always=without_validation, only=state.active)
            # Step 2, lines 8 to 11: select the pseudo-labels that minimize the shift.
            log_proba = output.logits
            if experts is not None:
                log_proba = experts.pool({STUDENT: output.logits}).log_proba
            candidates = find_candidates(  # Eq. 9
                problem, log_proba, num_candidates, self.class_balance
            )
            score = self.score_candidates(problem, candidates, output.embedding, state.stage)
            selection = candidates.select(score)
            state.finish_stage(selection, output.embedding)
            num_candidates = num_candidates * (1 + self.growth)
        # Step 3, line 14: train a student on the original graph (Eq. 15). It is the network of the
        # teacher, with the parameters of the best stage.
        best.restore()
        student = teacher.network
        if self.max_stages > 0:  # without pseudo-labels, the student is the teacher
            self.train_student(student, state.labels, problem)
        logits = student.predict().logits
        if experts is None:
            results = state.results(logits.softmax(-1), student.model, teacher.edge_probabilities)
            return results, None
        # Departure 6: a second student, a Gaussian process, learns from the combined prediction.
        confident = confident_half(problem, experts.pool({STUDENT: logits}).log_proba)
        second = stored(
            problem.checkpoint,
            "second-student",
            lambda: learn_pseudo_labels(problem, confident),
            problem.device,
        )
        pool = experts.pool({STUDENT: logits, GP_STUDENT: second(problem.graph)})
        results = state.results(
            pool.log_proba.exp(), student.model, teacher.edge_probabilities, pool.weights
        )
        model = experts.model(pool, pretrained, student.model, second)
        row_model = None if problem.graph.complete else model
        results = [
            replace(r, expectation=own, row_model=row_model)
            for r, own in zip(results, experts.expectations(), strict=True)
        ]
        return with_predictors(results, model.without_labels(), problem), pool.evidence

    def create_teacher(self, problem: Problem) -> Teacher:
        """Create a teacher with new parameters, with an edge predictor if the setting is true."""
        settings = EdgeSettings(
            cmd_weight=self.cmd_weight,
            predictor_weight=self.predictor_weight,
            cmd_trains=self.cmd_trains,
            nodes=self.edge_nodes,
            pairs=self.edge_pairs,
            temperature=self.edge_temperature,
        )
        return Teacher(self.create_network(problem), problem, settings, self.edge_predictor)

    def score_candidates(
        self, problem: Problem, candidates: Candidates, z: Tensor, stage: int
    ) -> Tensor:
        """``(R, n)`` selection score: q of Eq. 13, or the confidence."""
        if self.criterion == "confidence":
            return candidates.confidence * candidates.mask
        budget = candidates.budget
        scale = 1 / budget.clamp_min(1)[:, None] if self.ner_reduction == "mean" else 1.0
        ner_term = self.ner_weight * scale * candidates.ner
        objective = SelectionObjective(z, problem.train_labels >= 0, problem.pool, ner_term)
        stored = problem.checkpoint.step(
            f"stage-{stage:02d}-selection",
            lambda: {"q": relaxed_selection(objective, candidates.mask, budget)},
        )
        return stored["q"].to(z.device)

    def train_student(self, student: Network, labels: Tensor, problem: Problem) -> None:
        """Train on the final labels and the original graph."""
        options = replace(self.training_options, epochs=self.student_epochs)
        student.train("student", labels, problem, options, number=1)

    def apply(self, result: Result, problem: Problem) -> list[Tensor]:
        """On another graph: the combined prediction of each replica.

        Results of version 0.1 have networks only; they are averaged with EM.
        """
        networks = super().apply(result, problem)
        if result.predictors or not self.experts or not bool((problem.train_labels >= 0).any()):
            return networks
        return [EM().average_with(problem, proba.log()).softmax(-1) for proba in networks]

    def models_on(self, result: Result, problem: Problem) -> Sequence[RowModel]:
        if not result.predictors:
            return super().models_on(result, problem)
        return [
            model.on(replace(problem, checkpoint=problem.checkpoint.within(f"replica-{number}")))
            for number, model in enumerate(self.pool_models(result))
        ]

    def predicts_rows(self, result: Result) -> bool:
        models = self.pool_models(result)
        return bool(models) and all(GCN.name not in model.members for model in models)

    def pool_models(self, result: Result) -> list[PoolModel]:
        """The stored combined prediction of each replica."""
        models = [model for model in result.predictors if isinstance(model, PoolModel)]
        if len(models) != len(result.predictors):
            raise InputError("the stored model is not one of dcgst; fit again")
        return models
