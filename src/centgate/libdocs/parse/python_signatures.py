"""Format the signatures of Python functions and classes for readers."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
MAX_WIDTH = 96
"""Characters above which each parameter of a signature gets its own line."""
MAX_DEFAULT = 60
"""Maximum characters of a default value."""
MAX_MEMBERS = 40
"""Maximum number of fields and one-line methods shown of a class."""
_TYPING = re.compile(r"(?<![\w.\"'])typing\.")
"""The module, neither a part of another name, as in `numpy.typing`, nor the beginning of a string."""
_VISIBLE_DECORATORS = (
    "property",
    "classmethod",
    "staticmethod",
    "cached_property",
    "contextmanager",
    "asynccontextmanager",
)


def format_signature(function: FunctionNode, *, method: bool) -> str:
    """Return the function as a stub, with its decorators, without `self` and the docstring."""
    decorators = [
        f"@{name}\n" for name in map(expression_name, function.decorator_list) if name in _VISIBLE_DECORATORS
    ]
    keyword = "async def" if isinstance(function, ast.AsyncFunctionDef) else "def"
    parameters = list(
        _format_parameters(function.args, skips_first=method and "staticmethod\n" not in "".join(decorators))
    )
    returns = f" -> {_format_annotation(function.returns)}" if function.returns else ""
    line = f"{keyword} {function.name}({', '.join(parameters)}){returns}"
    if len(line) > MAX_WIDTH:
        inner = "".join(f"    {parameter},\n" for parameter in parameters)
        line = f"{keyword} {function.name}(\n{inner}){returns}"
    return f"{''.join(decorators)}{line}: ..."


def format_class_outline(node: ast.ClassDef) -> str:
    """Return a class's header, its public fields and its constructor."""
    bases = ", ".join(
        _format_annotation(base) for base in node.bases if "Generic" not in _format_annotation(base)
    )
    lines = [f"{''.join(_class_decorators(node))}class {node.name}" + (f"({bases})" if bases else "") + ":"]
    members = list(_iter_members(node))
    lines += [f"    {line}" for member in members[:MAX_MEMBERS] for line in member.split("\n")]
    if len(members) > MAX_MEMBERS:
        lines.append("    ...")
    return "\n".join(lines) if members else f"{lines[0]} ..."


def format_parameter_notes(function: FunctionNode) -> list[str]:
    """Return the `Annotated[..., Doc("...")]` text of each parameter, one Markdown list item each."""
    notes: list[str] = []
    arguments = function.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        text = doc_text(argument.annotation)
        if text:
            notes.append(textwrap.indent(f"- `{argument.arg}`: {text}", "  ").removeprefix("  "))
    return notes


def doc_text(annotation: ast.expr | None) -> str | None:
    """Return the text of the `Doc` in an annotation; None without any."""
    for each in _annotation_metadata(annotation):
        if isinstance(each, ast.Call) and expression_name(each) == "Doc" and each.args:
            text = each.args[0]
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                return inspect.cleandoc(text.value)
    return None


def expression_name(node: ast.expr) -> str:
    """Return the last part of the name that an expression is or calls; empty for other expressions."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def is_public(name: str) -> bool:
    """True if a name is meant for users."""
    return not name.startswith("_")


def _iter_members(node: ast.ClassDef) -> Iterator[str]:
    for member in node.body:
        if isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
            if is_public(member.target.id) and "ClassVar" not in _format_annotation(member.annotation)[:9]:
                value = f" = {_format_value(member.value)}" if member.value else ""
                yield f"{member.target.id}: {_format_annotation(member.annotation)}{value}"
        elif isinstance(member, ast.Assign) and len(member.targets) == 1:
            target = member.targets[0]
            if (
                isinstance(target, ast.Name)
                and is_public(target.id)
                and isinstance(member.value, ast.Constant)
            ):
                yield f"{target.id} = {_format_value(member.value)}"
        elif (
            isinstance(member, FunctionNode)
            and member.name == "__init__"
            and member.args.args[1:] + member.args.kwonlyargs
        ):
            yield format_signature(member, method=True)


def _class_decorators(node: ast.ClassDef) -> Iterator[str]:
    for decorator in node.decorator_list:
        if expression_name(decorator) in ("dataclass", "define", "frozen", "final", "runtime_checkable"):
            yield f"@{_format_value(decorator)}\n"


def _format_parameters(arguments: ast.arguments, *, skips_first: bool) -> Iterator[str]:
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    slash = len(arguments.posonlyargs)
    for index, (argument, default) in enumerate(zip(positional, defaults, strict=True)):
        if not (skips_first and index == 0):
            yield _format_parameter(argument, default)
        if slash and index == slash - 1 and not (skips_first and index == 0):
            yield "/"
    if arguments.vararg:
        yield f"*{_format_parameter(arguments.vararg, None)}"
    elif arguments.kwonlyargs:
        yield "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _format_parameter(argument, default)
    if arguments.kwarg:
        yield f"**{_format_parameter(arguments.kwarg, None)}"


def _format_parameter(argument: ast.arg, default: ast.expr | None) -> str:
    if argument.annotation is None:
        return argument.arg + (f"={_format_value(default)}" if default else "")
    return f"{argument.arg}: {_format_annotation(argument.annotation)}" + (
        f" = {_format_value(default)}" if default else ""
    )


def _format_annotation(annotation: ast.expr | None) -> str:
    """Return an annotation without the metadata that only documents it."""
    if annotation is None:
        return ""
    metadata = _annotation_metadata(annotation)
    if metadata and isinstance(annotation, ast.Subscript) and isinstance(annotation.slice, ast.Tuple):
        other_metadata = [each for each in metadata if expression_name(each) not in ("Doc", "deprecated")]
        if not other_metadata:
            return _format_annotation(annotation.slice.elts[0])
    text = _TYPING.sub("", _unparse(annotation))
    return text if '"' in text else text.replace("'", '"')


def _annotation_metadata(annotation: ast.expr | None) -> list[ast.expr]:
    if isinstance(annotation, ast.Subscript) and expression_name(annotation.value) == "Annotated":
        inner = annotation.slice
        return inner.elts[1:] if isinstance(inner, ast.Tuple) else []
    return []


def _format_value(value: ast.expr | None) -> str:
    text = _unparse(value) if value else ""
    return text if len(text) <= MAX_DEFAULT and "\n" not in text else "..."


def _unparse(expression: ast.expr) -> str:
    try:
        return ast.unparse(expression)
    except ValueError:  # an integer in hexadecimal digits, of more decimal ones than Python writes
        return "..."
