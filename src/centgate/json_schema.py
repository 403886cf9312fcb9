"""JSON Schemas (draft 2020-12) as typed objects, also those of an untrusted API.

Parsing checks the types of all keywords, so that readers need no checks of their own. References are resolved
when they are followed, since a schema may refer to itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Annotated, Any, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel

MAX_DEPTH = 12
"""Maximum nesting of arrays and of alternatives; a schema that refers to itself would never end."""
MAX_STEPS = 50_000
"""Maximum schemas that are read per document; definitions that refer to one another would multiply."""
_MAX_EXACT_INTEGER = 2**53 - 1

Number = int | float


def _split_type(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _drop_exact_maximum(value: Number | None) -> Number | None:
    """Drop the maximum of every exact integer in JSON: it applies to all numbers."""
    return None if value is not None and value >= _MAX_EXACT_INTEGER else value


class InvalidSchema(Exception):
    """The JSON is not a schema, or its definitions refer to one another endlessly."""


class Schema(BaseModel):
    """One schema, with the keywords that describe values; those that are missing are empty or None."""

    model_config = ConfigDict(strict=True, frozen=True, alias_generator=to_camel)

    reference: str | None = Field(None, alias="$ref")
    description: str = ""
    types: Annotated[list[str], FailFast(), BeforeValidator(_split_type)] = Field(
        default_factory=list[str], alias="type"
    )
    enum: list[Any] = Field(default_factory=list[Any])
    const: Any = None
    default: Any = None
    properties: dict[str, Schema] = Field(default_factory=dict[str, "Schema"])
    required: Annotated[list[str], FailFast()] = Field(default_factory=list[str])
    additional_properties: bool | Schema = Field(default=True, union_mode="left_to_right")
    items: Schema | None = None
    all_of: list[Schema] = Field(default_factory=list["Schema"])
    any_of: list[Schema] = Field(default_factory=list["Schema"])
    one_of: list[Schema] = Field(default_factory=list["Schema"])
    then: Schema | None = None
    """What is demanded of all values; our own schemas write it with an `if` that always holds."""
    excluded: Schema | None = Field(None, alias="not")
    minimum: Number | None = None
    maximum: Annotated[Number | None, AfterValidator(_drop_exact_maximum)] = None
    exclusive_minimum: Number | None = None
    exclusive_maximum: Number | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    pattern: str | None = None
    format: str | None = None

    _document: SchemaDocument = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Keep the document, in which references are resolved."""
        self._document = context

    @model_validator(mode="wrap")
    @classmethod
    def _stop_at_first_problem(cls, node: Any, validate: ModelWrapValidatorHandler[Schema]) -> Schema:
        try:
            return validate(node)
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, problem["loc"])) or "schema"
            raise InvalidSchema(f"{place}: {problem['msg']}") from None

    def has(self, keyword: str) -> bool:
        """Return True if a keyword is present, whatever its value."""
        return keyword in self.model_fields_set

    @property
    def type(self) -> str | None:
        """The type; None if there is none, or several."""
        return self.types[0] if len(self.types) == 1 else None

    @property
    def values(self) -> list[Any]:
        """All allowed values; empty if they are not listed."""
        return self.enum or ([self.const] if self.has("const") else [])

    @property
    def bounds(self) -> tuple[Number | None, Number | None]:
        """Minimum and maximum of a number, of a string's length or of an array's size."""
        pairs = (
            (self.minimum, self.maximum),
            (self.min_length, self.max_length),
            (self.min_items, self.max_items),
        )
        low, high = next((pair for pair in pairs if pair != (None, None)), pairs[0])
        if self.exclusive_minimum is not None and self.type == "integer":
            low = self.exclusive_minimum + 1
        return low, high

    @property
    def item(self) -> Schema:
        """The schema of an array's items, without null."""
        return (self.items or self._document.parse({})).non_null

    @property
    def resolved(self) -> Schema:
        """The schema itself, or the target of its `$ref`, overridden by the keywords beside it."""
        self._document.count_step()
        schema, overrides = self, dict[str, Any]()
        while schema.reference is not None:
            overrides = {name: getattr(schema, name) for name in schema.model_fields_set} | overrides
            schema = self._document.follow(schema.reference)
        overrides.pop("reference", None)
        return schema.model_copy(update=overrides) if overrides else schema

    @property
    def non_null(self) -> Schema:
        """The resolved schema without null; keywords beside a single other alternative override it."""
        schema = self.resolved
        for _ in range(MAX_DEPTH):
            others = [each for each in schema.variants if each.type != "null"]
            if len(others) in (0, len(schema.variants)):
                break
            if len(others) > 1:
                return schema.model_copy(update={"any_of": others, "one_of": [], "types": []})
            siblings = schema.model_fields_set - {"any_of", "one_of", "types"}
            schema = others[0].model_copy(update={name: getattr(schema, name) for name in siblings})
        return schema

    @property
    def nullable(self) -> bool:
        """True if null is one of the alternatives."""
        return {each.type == "null" for each in self.iterate_alternatives()} == {True, False}

    def iterate_alternatives(self, depth: int = 0) -> Iterator[Schema]:
        """Yield all alternatives, resolved; without alternatives, the resolved schema."""
        schema = self.resolved
        if depth == MAX_DEPTH or not schema.variants:
            yield schema
        else:
            for each in schema.variants:
                yield from each.iterate_alternatives(depth + 1)

    @property
    def variants(self) -> list[Schema]:
        """The direct alternatives, resolved; combinations of required fields are none."""
        if len(self.types) > 1:
            return [self.model_copy(update={"types": [each]}) for each in self.types]
        variants = self.any_of or self.one_of
        describe_fields = any(each.required and not each.types for each in variants)
        return [] if describe_fields else [each.resolved for each in variants]

    def describe_type(self, array_of: str, describe: Callable[[Schema], str], depth: int = 0) -> str:
        """Return `A or array of B`, with `describe` for every type that is no array."""
        if depth == MAX_DEPTH:
            return "any"
        names = (
            f"{array_of} {each.item.describe_type(array_of, describe, depth + 1)}"
            if each.type == "array"
            else describe(each)
            for each in self.iterate_alternatives()
        )
        return " or ".join(dict.fromkeys(names))

    def iterate_parts(self) -> Iterator[Schema]:
        """Yield all schemas that are combined into this one, at any depth."""
        for part in (*self.all_of, *self.any_of, *self.one_of, *([self.then] if self.then else ())):
            yield part
            yield from part.iterate_parts()

    def field_parts(self, name: str) -> list[Schema]:
        """Return what the combined schemas demand of a field."""
        return [part.properties[name] for part in self.iterate_parts() if name in part.properties]

    def field_values(self, name: str) -> list[Any]:
        """Return a field's allowed values, listed in its own schema or in a combined one."""
        schemas = (self.properties[name], *self.field_parts(name))
        return next((each.values for each in schemas if each.values), list[Any]())

    def iterate_choices(self) -> Iterator[tuple[str, list[str]]]:
        """Yield groups of fields of which at least one (`anyOf`) or exactly one (`oneOf`) is required."""
        for part in (self, *self.iterate_parts()):
            for keyword, branches in (("anyOf", part.any_of), ("oneOf", part.one_of)):
                names = list(dict.fromkeys(name for branch in branches for name in branch.required))
                if len(names) > 1:
                    yield keyword, names


class SchemaDocument:
    """The definitions that schemas refer to; it limits the work that they cause together."""

    def __init__(self, definitions: Any, path: str = "#/$defs/") -> None:
        """Parse definitions, to which references begin with `path`. Raises InvalidSchema."""
        self._steps = 0
        schemas = self.parse({"properties": definitions}).properties
        self._schemas = {path + name: schema for name, schema in schemas.items()}

    def parse(self, schema: Any) -> Schema:
        """Parse a schema that refers to the definitions. Raises InvalidSchema."""
        return Schema.model_validate(schema, context=self)

    def follow(self, reference: str) -> Schema:
        """Return the target of a reference; an empty schema if there is none."""
        self.count_step()
        return self._schemas.get(reference) or self.parse({})

    def count_step(self) -> None:
        """Count a schema that is read. Raises InvalidSchema after `MAX_STEPS`."""
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise InvalidSchema("schemas refer to one another endlessly")


def parse_schema(schema: Any) -> Schema:
    """Parse a schema with its own definitions. Raises InvalidSchema."""
    definitions: Any = cast(dict[str, Any], schema).get("$defs", {}) if isinstance(schema, dict) else {}
    return SchemaDocument(definitions).parse(schema)


def without_field_rules(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a copy without the rules of `then` after an `if` that always holds, except at the root.

    They are for validators of a field's text; models and headers can do without their long patterns.
    """
    copied = deepcopy(schema)
    for node in iterate_objects(copied):
        if node is not copied and _has_hidden_rule(node):
            node.pop("if")
            node.pop("then", None)
    return copied


def _has_hidden_rule(node: dict[str, Any]) -> bool:
    """Return True if the condition of an object's rule always holds: it is empty, or repeats the type."""
    return "if" in node and node["if"] in ({}, {"type": node.get("type")})


def iterate_objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield every object inside a JSON Schema, outermost first."""
    if isinstance(schema, dict):
        node = cast(dict[str, Any], schema)
        yield node
        for value in node.values():
            yield from iterate_objects(value)
    elif isinstance(schema, list):
        for value in cast(list[Any], schema):
            yield from iterate_objects(value)
