"""Writes the client's typed methods and the models of their answers, from the services themselves."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill, indent
from typing import Any

from pydantic.alias_generators import to_camel

from centgate.catalog import all_services
from centgate.schema import camel
from centgate.service import AnyService

WIDTH = 108
_MADE = "# written by `make client` from the services: what is edited here is lost"
_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}

Schema = Mapping[str, Any]


def written() -> dict[str, str]:
    """The generated modules by file name, as they are before `ruff format`."""
    catalog = all_services()
    return {"models.py": _models(catalog), "services.py": _services(catalog)}


def snake(name: str) -> str:
    """A name on the wire as a Python name; ValueError where it could not be found back."""
    found = re.sub(r"(?<=[a-z0-9])([A-Z])", lambda upper: f"_{upper[1].lower()}", name)
    if camel(found) != name:
        raise ValueError(f"{name} has no name in snake_case that leads back to it")
    return found


def _models(catalog: tuple[AnyService, ...]) -> str:
    """The module of the answers' models, a whole before its parts."""
    naming = _Naming(catalog)
    models = {name: text for service in catalog for name, text in _models_of(service, naming)}
    content = "\n\n".join(models.values())
    parts = [
        '"""What each service answers, as models; `| str` stands for words of newer servers."""',
        _MADE,
        "from __future__ import annotations",
        "from typing import Literal",
        *(["from pydantic import Field"] if "Field(" in content else []),
        "from centgate.client.typed import AnswerData",
        content,
    ]
    return "\n\n".join(parts) + "\n"


def _models_of(service: AnyService, naming: _Naming) -> Iterator[tuple[str, str]]:
    """The classes of one service by name: its answer, and the parts of that."""
    classes = naming.within(service)
    yield f"{_pascal(service)}Data", _model(f"{_pascal(service)}Data", service.output_schema, classes)
    for name, schema in _definitions(service).items():
        found = classes[f"#/$defs/{name}"]
        yield found, _model(found, schema, classes)


class _Naming:
    """What the parts of an answer are called: as in its schema, unless two services mean different things."""

    def __init__(self, catalog: tuple[AnyService, ...]) -> None:
        self._meanings: dict[str, list[Any]] = {}
        for service in catalog:
            for name, schema in _definitions(service).items():
                meanings = self._meanings.setdefault(name, [])
                if schema not in meanings:
                    meanings.append(schema)

    def within(self, service: AnyService) -> Mapping[str, str]:
        """The class of each definition of a service, by its `$ref`."""
        return {
            f"#/$defs/{name}": f"{_pascal(service)}{name}" if len(self._meanings[name]) > 1 else name
            for name in _definitions(service)
        }


def _definitions(service: AnyService) -> dict[str, Schema]:
    return service.output_schema.get("$defs", {})


def _model(name: str, schema: Schema, classes: Mapping[str, str]) -> str:
    """A class; what a field means stands under it."""
    lines = [f"class {name}(AnswerData):", indent(_docstring(schema["description"]), "    "), ""]
    for wire, field in schema["properties"].items():
        attribute = snake(wire)
        lines.append(f"    {attribute}: {_answered(field, classes)}{_alias(attribute, wire)}")
        if said := field.get("description"):
            lines.append(indent(_docstring(said), "    "))
    return "\n".join(lines)


def _alias(attribute: str, wire: str) -> str:
    """How the wire calls a field, where the models' own rule does not say it."""
    return "" if to_camel(attribute) == wire else f' = Field(alias="{wire}")'


def _answered(schema: Schema, classes: Mapping[str, str]) -> str:
    """The type of something answered. A newer API may have more words than are known here."""
    if "$ref" in schema:
        return classes[schema["$ref"]]
    if "anyOf" in schema:
        return " | ".join(_answered(each, classes) for each in schema["anyOf"])
    if schema["type"] == "array":
        return f"list[{_answered(schema['items'], classes)}]"
    words = _words(schema)
    return f"{words} | str" if words else _TYPES[schema["type"]]


def _words(schema: Schema) -> str | None:
    """The words that a string may be, as a Literal."""
    words: list[str] = [schema["const"]] if "const" in schema else schema.get("enum", [])
    return f"Literal[{', '.join(map(_quoted, words))}]" if words else None


def _quoted(word: str) -> str:
    return f'"{word}"'


@dataclass(frozen=True)
class _Parameter:
    """One property of a request, as a keyword."""

    wire: str
    schema: Schema
    required: bool

    @property
    def name(self) -> str:
        return snake(self.wire)

    @property
    def declared(self) -> str:
        """The parameter with its type; None is what the API decides itself."""
        if self.required:
            return f"{self.name}: {self._type(self.schema)}"
        return f"{self.name}: {self._type(self.schema)} | None = None"

    @property
    def told(self) -> str:
        """What it means and what it may be, for the docstring."""
        said = self.schema.get("description", "").rstrip(".")
        notes = [bounds] if (bounds := _bounds(self.schema)) else []
        if "default" in self.schema:
            notes.append(f"{self.schema['default']} when left out")
        return f"{self.name}: {'; '.join((said, *notes))}."

    def _type(self, schema: Schema) -> str:
        if schema["type"] == "array":
            return f"list[{self._type(schema['items'])}]"
        return _words(schema) or _TYPES[schema["type"]]


def _services(catalog: tuple[AnyService, ...]) -> str:
    """The module of the methods."""
    models = ", ".join(sorted(f"{_pascal(service)}Data" for service in catalog))
    answers = [f"{_pascal(each)}Answer = TypedAnswer[{_pascal(each)}Data]" for each in catalog]
    parts = [
        '"""A method for each service, sync and async."""',
        _MADE,
        "from __future__ import annotations",
        "from typing import Literal",
        f"from centgate.client.models import {models}\n"
        "from centgate.client.typed import AsyncCalls, Calls, TypedAnswer, given",
        "\n".join(answers),
        _methods("Services", "Calls", catalog),
        _methods("AsyncServices", "AsyncCalls", catalog),
    ]
    return "\n\n".join(parts) + "\n"


def _methods(name: str, base: str, catalog: tuple[AnyService, ...]) -> str:
    how = "async def" if base == "AsyncCalls" else "def"
    methods = "\n\n".join(_method(how, service) for service in catalog)
    doc = '"""Every service of the catalogue, typed."""'
    return f"class {name}({base}):\n    {doc}\n\n{indent(methods, '    ')}"


def _method(how: str, service: AnyService) -> str:
    parameters = _parameters(service)
    keywords = ", ".join(parameter.declared for parameter in parameters)
    name, answer = service.slug.replace("-", "_"), _pascal(service)
    body = ", ".join(f"{parameter.wire}={parameter.name}" for parameter in parameters)
    waiting = "await " if how == "async def" else ""
    call = f'{waiting}self.call("{service.slug}", given({body}))'
    return "\n".join(
        [
            f"{how} {name}(self, *, {keywords}) -> {answer}Answer:",
            indent(_docstring(*_told(service, parameters)), "    "),
            f"    return TypedAnswer({call}, {answer}Data)",
        ]
    )


def _parameters(service: AnyService) -> list[_Parameter]:
    """The keywords of a service, those that it needs first."""
    schema = service.input_schema(None)
    required = schema.get("required", [])
    parameters = [
        _Parameter(wire, _narrowed(schema, wire), wire in required) for wire in schema["properties"]
    ]
    return sorted(parameters, key=lambda parameter: not parameter.required)


def _told(service: AnyService, parameters: list[_Parameter]) -> list[str]:
    """The paragraphs of a method's docstring."""
    keywords = "\n".join(_item(parameter.told) for parameter in parameters)
    bounds = "\n".join(_item(line) for line in service.guardrails)
    more = service.description if service.description != service.summary else ""
    choices = _choices(service.input_schema(None))
    told = [service.summary, f"${service.price} a call.", more, choices, keywords, f"Bounds:\n{bounds}"]
    return [paragraph for paragraph in told if paragraph]


def _choices(schema: Schema) -> str:
    """Which keywords stand for one another, from the schema's anyOf and oneOf."""
    found: list[str] = []
    for part in (schema, *schema.get("allOf", ())):
        for kind, says in (("anyOf", "Needs {}."), ("oneOf", "Needs {}, and not both.")):
            branches = [branch.get("required", ()) for branch in part.get(kind, ())]
            if names := [f"`{snake(name)}`" for required in branches for name in required]:
                found.append(says.format(" or ".join(names)))
    return " ".join(found)


def _narrowed(schema: Schema, wire: str) -> Schema:
    """A property with what the schema's conditions say of it beside its declaration."""
    conditions = [branch for part in ("allOf", "anyOf") for branch in schema.get(part, ())]
    conditions += [branch for each in conditions for branch in each.get("anyOf", ())]
    said = [condition.get("properties", {}).get(wire, {}) for condition in conditions]
    values = next((each["enum"] for each in said if "enum" in each), None)
    return {**schema["properties"][wire], **({"values": values} if values else {})}


def _bounds(schema: Schema) -> str:
    """What the schema says of values, lengths and sizes, in words."""
    if "values" in schema:
        return f"one of {', '.join(map(str, schema['values']))}"
    kind = {"string": "characters", "array": "items"}.get(schema["type"], "")
    least = schema.get("minimum", schema.get("minLength", schema.get("minItems")))
    most = schema.get("maximum", schema.get("maxLength", schema.get("maxItems")))
    if most is None or most >= 2**53 - 1:
        return ""
    return " ".join((f"at most {most}" if least is None else f"{least} to {most}", kind)).strip()


def _in_python(text: str) -> str:
    """A description with Python's words: `chainId` is `chain_id`, and null is None."""
    named = re.sub(r"`([a-z]+[A-Z]\w*)`", lambda name: f"`{snake(name[1])}`", text)
    return re.sub(r"\b[Nn]ull\b", "None", named)


def _pascal(service: AnyService) -> str:
    return "".join(word.title() for word in service.slug.split("-"))


def _item(text: str) -> str:
    return fill(text, WIDTH - 8, initial_indent="- ", subsequent_indent="  ")


def _docstring(*paragraphs: str) -> str:
    """A docstring of wrapped paragraphs; what has line breaks already stays as it is."""
    wrapped = [each if "\n" in each else fill(each, WIDTH - 12) for each in paragraphs]
    content = _in_python("\n\n".join(wrapped)).replace("\\", "\\\\")
    return f'"""{content}\n"""' if "\n" in content else f'"""{content}"""'


def main(folder: Path) -> None:
    """Write the modules into the client's folder."""
    for name, content in written().items():
        (folder / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
