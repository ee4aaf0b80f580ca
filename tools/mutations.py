"""Small changes of Python source: one operator, number, condition or statement at a time."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"

COMPARE = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
BINARY = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    path: str
    line: int
    index: int
    description: str


def mutants_of(path: Path) -> list[Mutant]:
    """All mutants of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    name = str(path.relative_to(SOURCE))
    return [
        Mutant(name, line, index, description)
        for index, (line, description, _) in enumerate(_changes(tree))
    ]


def mutate(path: Path, index: int) -> str:
    """The source of a file with one change."""
    tree = copy.deepcopy(ast.parse(path.read_text(encoding="utf-8")))
    for number, (_, _, change) in enumerate(_changes(tree)):
        if number == index:
            change()
            return ast.unparse(ast.fix_missing_locations(tree))
    raise IndexError(f"{path} has no mutant {index}")


def _changes(tree: ast.AST) -> Iterator[tuple[int, str, Callable[[], None]]]:
    """Line, description and function of every change, in a fixed order."""
    for node in _code_nodes(tree):
        if isinstance(node, ast.Compare):
            for place, operator in enumerate(node.ops):
                other = COMPARE.get(type(operator))
                if other is not None:
                    yield node.lineno, _swap(operator, other), _setter(node.ops, place, other())
        elif isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in BINARY:
            other_op = BINARY[type(node.op)]
            yield node.lineno, _swap(node.op, other_op), _attribute(node, "op", other_op())
        elif isinstance(node, ast.BoolOp):
            flipped = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield node.lineno, _swap(node.op, type(flipped)), _attribute(node, "op", flipped)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.Invert, ast.USub)):
            positive = ast.UAdd()
            if isinstance(node.op, ast.USub):
                yield node.lineno, "-x to x", _attribute(node, "op", positive)
            elif isinstance(node.op, ast.Not):
                yield node.lineno, "not x to x", _drop_not(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float)):
            value = _other_value(node.value)
            yield node.lineno, f"{node.value} to {value}", _attribute(node, "value", value)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            text = ast.unparse(node.value)[:40]
            yield node.lineno, f"remove {text}", _attribute(node, "value", ast.Constant(None))


def _code_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes that affect results, in a fixed order."""
    skipped = {
        id(child)
        for node in ast.walk(tree)
        for part in _irrelevant_parts(node)
        for child in ast.walk(part)
    }
    return (node for node in ast.walk(tree) if id(node) not in skipped)


def _irrelevant_parts(node: ast.AST) -> list[ast.AST]:
    """Parts of a node whose change would be equivalent or only affect messages."""
    match node:
        case ast.FunctionDef(decorator_list=decorators, returns=returns):
            return [*decorators, *([returns] if returns else [])]
        case ast.ClassDef(decorator_list=decorators):
            return [*decorators]
        case ast.AnnAssign(annotation=annotation) | ast.arg(annotation=ast.expr() as annotation):
            return [annotation]
        case ast.Assign() if _is_excluded(node):
            return [node]
        case ast.If(test=test) if "TYPE_CHECKING" in ast.unparse(test):
            return [node]
        case ast.keyword(arg="strict" | "kind" | "stable" | "force") | ast.Raise():
            return [node]
        case _:
            return []


def _is_excluded(node: ast.Assign) -> bool:
    names = [target.id for target in node.targets if isinstance(target, ast.Name)]
    return any(name.startswith("_") for name in names)


def _other_value(value: float) -> float:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return 2 * value if value else 1.0


def _swap(old: ast.AST, new: type[ast.AST]) -> str:
    return f"{type(old).__name__} to {new.__name__}"


def _setter(items: list[ast.cmpop], place: int, value: ast.cmpop) -> Callable[[], None]:
    return lambda: items.__setitem__(place, value)


def _attribute(node: ast.AST, name: str, value: object) -> Callable[[], None]:
    return lambda: setattr(node, name, value)


def _drop_not(node: ast.UnaryOp) -> Callable[[], None]:
    def change() -> None:
        node.op = ast.Not()
        node.operand = ast.UnaryOp(ast.Not(), node.operand)

    return change
