"""Signatures of Python's functions and classes, written as a reader wants them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef
WIDTH = 96
"""Characters after which a signature gets a line for each parameter."""
DEFAULT = 60
"""Characters of a default value that are shown."""
MEMBERS = 40
"""Fields, and one-line methods, that are shown of a class."""
_SHOWN_DECORATORS = (
    "property",
    "classmethod",
    "staticmethod",
    "cached_property",
    "contextmanager",
    "asynccontextmanager",
)


def signature(function: Function, *, method: bool = False) -> str:
    """The line, or lines, from its decorators to its return annotation; without `self` and documentation."""
    decorators = [f"@{name}\n" for name in map(name_of, function.decorator_list) if name in _SHOWN_DECORATORS]
    keyword = "async def" if isinstance(function, ast.AsyncFunctionDef) else "def"
    parameters = list(_parameters(function.args, bare=method and "staticmethod\n" not in "".join(decorators)))
    returns = f" -> {_written(function.returns)}" if function.returns else ""
    line = f"{keyword} {function.name}({', '.join(parameters)}){returns}"
    if len(line) > WIDTH:
        inner = "".join(f"    {parameter},\n" for parameter in parameters)
        line = f"{keyword} {function.name}(\n{inner}){returns}"
    return "".join(decorators) + line


def class_outline(node: ast.ClassDef) -> str:
    """Its header, its public fields and how it is made."""
    bases = ", ".join(_written(base) for base in node.bases if "Generic" not in _written(base))
    lines = [f"{''.join(_class_decorators(node))}class {node.name}" + (f"({bases})" if bases else "") + ":"]
    members = list(_members(node))
    lines += [f"    {line}" for member in members[:MEMBERS] for line in member.split("\n")]
    if len(members) > MEMBERS:
        lines.append("    ...")
    return "\n".join(lines) if members else lines[0].removesuffix(":")


def parameter_notes(function: Function) -> list[str]:
    """What `Annotated[..., Doc("...")]` says of each parameter, a line or more each."""
    notes: list[str] = []
    arguments = function.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        text = doc_of(argument.annotation)
        if text:
            notes.append(f"- `{argument.arg}`: {text}")
    return notes


def doc_of(annotation: ast.expr | None) -> str | None:
    """The text of the `Doc` in an annotation."""
    for each in _metadata(annotation):
        if isinstance(each, ast.Call) and name_of(each) == "Doc" and each.args:
            text = each.args[0]
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                return "\n".join(line.strip() for line in text.value.strip().splitlines())
    return None


def name_of(node: ast.expr) -> str:
    """The last part of the name that an expression calls or is; empty for others."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def is_public(name: str) -> bool:
    """Whether a name is meant for users."""
    return not name.startswith("_")


def _members(node: ast.ClassDef) -> Iterator[str]:
    for member in node.body:
        if isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
            if is_public(member.target.id) and "ClassVar" not in _written(member.annotation)[:9]:
                value = f" = {_shortened(member.value)}" if member.value else ""
                yield f"{member.target.id}: {_written(member.annotation)}{value}"
        elif isinstance(member, ast.Assign) and len(member.targets) == 1:
            target = member.targets[0]
            if (
                isinstance(target, ast.Name)
                and is_public(target.id)
                and isinstance(member.value, ast.Constant)
            ):
                yield f"{target.id} = {_shortened(member.value)}"
        elif (
            isinstance(member, Function)
            and member.name == "__init__"
            and member.args.args[1:] + member.args.kwonlyargs
        ):
            yield signature(member, method=True)


def _class_decorators(node: ast.ClassDef) -> Iterator[str]:
    for decorator in node.decorator_list:
        if name_of(decorator) in ("dataclass", "define", "frozen", "final", "runtime_checkable"):
            yield f"@{_shortened(decorator)}\n"


def _parameters(arguments: ast.arguments, *, bare: bool) -> Iterator[str]:
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    slash = len(arguments.posonlyargs)
    for index, (argument, default) in enumerate(zip(positional, defaults, strict=True)):
        if not (bare and index == 0):
            yield _parameter(argument, default)
        if slash and index == slash - 1 and not (bare and index == 0):
            yield "/"
    if arguments.vararg:
        yield f"*{_parameter(arguments.vararg, None)}"
    elif arguments.kwonlyargs:
        yield "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _parameter(argument, default)
    if arguments.kwarg:
        yield f"**{_parameter(arguments.kwarg, None)}"


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    if argument.annotation is None:
        return argument.arg + (f"={_shortened(default)}" if default else "")
    return f"{argument.arg}: {_written(argument.annotation)}" + (
        f" = {_shortened(default)}" if default else ""
    )


def _written(annotation: ast.expr | None) -> str:
    """An annotation without the metadata that only documents it."""
    if annotation is None:
        return ""
    metadata = _metadata(annotation)
    if metadata and isinstance(annotation, ast.Subscript) and isinstance(annotation.slice, ast.Tuple):
        kept = [each for each in metadata if name_of(each) not in ("Doc", "deprecated")]
        if not kept:
            return _written(annotation.slice.elts[0])
    return ast.unparse(annotation).replace("typing.", "").replace("'", '"') if annotation else ""


def _metadata(annotation: ast.expr | None) -> list[ast.expr]:
    if isinstance(annotation, ast.Subscript) and name_of(annotation.value) == "Annotated":
        inner = annotation.slice
        return inner.elts[1:] if isinstance(inner, ast.Tuple) else []
    return []


def _shortened(value: ast.expr | None) -> str:
    text = ast.unparse(value) if value else ""
    return text if len(text) <= DEFAULT and "\n" not in text else "..."
