"""Distribution consistency based graph self-training (Wang et al., WSDM 2024)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from dcgst.errors import InputError
from dcgst.methods.dcgst.candidates import Candidates, find_candidates, representation
from dcgst.methods.dcgst.settings import Settings
from dcgst.methods.dcgst.teacher import Teacher
from dcgst.methods.networks import Network
from dcgst.methods.problem import Problem
from dcgst.methods.result import Result
from dcgst.methods.self_training import SelfTraining, StopRule
from dcgst.nn.backbones import BACKBONES, Output
from dcgst.shift.selection import SelectionObjective, exchange, relaxed_selection
from dcgst.train.training import BestState, cross_entropy


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
    multiplied by 1 + λ after each stage. Stages end when the shift has not decreased in
    ``stage_patience`` stages in a row, without further candidates, or after ``max_stages``. Then a
    student is trained on the last labels and the original graph. docs/methods/dcgst.md explains
    the presets and the departures from the paper.

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
        return 1 + self.max_stages + 1  # pretraining, stages, student

    def check(self) -> None:
        super().check()
        if self.edge_predictor and BACKBONES.resolve(self.backbone).hops == 0:
            raise InputError(
                "the network has no edges to learn; set edge_predictor=false, or backbone=gcn"
            )

    def solve(self, problem: Problem) -> list[Result]:
        """Algorithm 1. V_L are the training labels, V_U the pool of the problem."""
        # Line 2, the partition into training and validation nodes, is in ``problem``.
        # Line 3: pretrain the teacher.
        teacher = Teacher(self.create_network(problem), problem, self)
        teacher.pretrain(self.training_options)
        output = teacher.predict()
        embed = representation(self.representation, problem)  # Z (Definition 1); departure 9
        state = SelfTraining(
            problem,
            embed(output),
            StopRule(problem, self.max_stages, self.stage_patience, self.stop_compares_with),
            accumulate=self.accumulate,
            support=self.cmd_support,
        )
        best = BestState(list(teacher.network.model.parameters()))
        stage_options = replace(self.training_options, epochs=self.stage_epochs, patience=None)
        num_candidates = (problem.train_labels >= 0).sum(1) / problem.num_classes  # K
        while bool(state.active.any()):  # line 4; state.labels are the labels of C_A
            # Step 1, line 6: train the teacher jointly with the edge predictor, which samples a
            # graph A' from its probabilities M in each epoch (Eq. 3 to 8).
            teacher.update_pairs(output, state.labels)
            teacher.train(state.labels, stage_options, state.stage, state.active)
            output = teacher.predict()  # departure 5: on the original graph
            stage, active = state.stage, state.active
            # Step 2, line 8: the candidates C, the K most confident nodes of each class (Eq. 9).
            candidates = find_candidates(
                problem, output.logits, num_candidates, self.class_balance, self.budget
            )
            # Lines 9 and 10: q minimizes D - γ NER (Eq. 12 to 14); its δ largest entries are C_S.
            z = embed(output)
            score = self.score_candidates(problem, candidates, z, stage)
            selection = candidates.select(score)
            # Line 11: C_A = C_S ∪ V_L, and K grows.
            exhausted = None if self.accumulate else candidates.exhausted
            shift = state.finish_stage(selection, z, exhausted)
            growth = self.growth + (self.growth_rule == "increment")  # λ, or λ + 1
            num_candidates = num_candidates * (1 + growth)
            best.update(stage, self.score_teacher(problem, output, shift, stage), only=active)
        # Step 3, line 14: train a student on the original graph (Eq. 15). It is the network of the
        # teacher, with the parameters of the best stage.
        best.restore()
        student = teacher.network
        if self.student_labels == "shift":
            state.restore_lowest_shift()
        self.train_student(student, state.labels, problem)
        proba = student.predict().logits.softmax(-1)
        return state.results(proba, student.model, teacher.edge_probabilities)

    @property
    def cmd_support(self) -> float | None:
        """|b - a| of the CMD; None for the range of Z."""
        return 1.0 if self.support == "one" else None

    def score_candidates(
        self, problem: Problem, candidates: Candidates, z: Tensor, stage: int
    ) -> Tensor:
        """``(R, n)`` selection score: q of Eq. 13, or the confidence."""
        if self.criterion == "confidence":
            return candidates.confidence * candidates.mask
        objective = self.make_objective(problem, candidates, z)
        stored = problem.checkpoint.step(
            f"stage-{stage:02d}-selection", lambda: {"q": self.minimize(objective, candidates)}
        )
        return stored["q"].to(z.device)

    def minimize(self, objective: SelectionObjective, candidates: Candidates) -> Tensor:
        """``(R, n)`` q of Eq. 13 and 14."""
        if self.solver == "exchange":  # departure 7
            most_confident = candidates.select(candidates.confidence).selected
            groups = None if candidates.quotas is None else candidates.predicted
            return exchange(objective, candidates.mask, most_confident, groups)
        mask, budget = candidates.mask, candidates.budget
        return relaxed_selection(objective, mask, budget, penalty=self.solver == "penalty")

    def make_objective(
        self, problem: Problem, candidates: Candidates, z: Tensor
    ) -> SelectionObjective:
        """The objective of Eq. 12."""
        distance = SelectionObjective(
            z,
            problem.train_labels >= 0,
            problem.pool,
            torch.zeros_like(candidates.ner),
            self.cmd_support,
        )
        gain = self.ner_weight * candidates.ner
        if self.ner_reduction == "mean":
            gain = gain / candidates.budget.clamp_min(1)[:, None]
        elif self.ner_reduction == "relative":  # departure 8: D and NER by those of equal weights
            equal = candidates.equal_weights()
            shift, ner = distance.value(equal), (equal * candidates.ner).sum(1).abs()
            gain = gain * (shift / ner.clamp_min(torch.finfo(ner.dtype).tiny))[:, None]
        return replace(distance, ner_term=gain)

    def score_teacher(self, problem: Problem, output: Output, shift: Tensor, stage: int) -> Tensor:
        """``(R,)`` what the best teacher minimizes."""
        if self.best_teacher == "shift":
            return shift
        last = torch.full_like(shift, -stage)  # the last teacher is the best
        if self.best_teacher == "last":
            return last
        val_loss = cross_entropy(output.logits, problem.val_labels)
        return torch.where(problem.has_validation, val_loss, last)

    def train_student(self, student: Network, labels: Tensor, problem: Problem) -> None:
        """Train on the final labels and the original graph."""
        options = replace(self.training_options, epochs=self.student_epochs)
        student.train("student", labels, problem, options, number=1)
