"""The files that are generated from the schema of result documents: python site/result_types.py writes them, and a test compares them.

The schema comes from the types in crates/experiment/src/result. From it come the types of Python and of the page, the colours of causes, and the page of the
reference: a key, a name or a cause that is added there is in all of them.
"""

from __future__ import annotations

import importlib.util
import json
import keyword
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
GENERATED = "generated from the schema of result documents: `make generate`"
Schema = dict[str, Any]


@dataclass(frozen=True)
class Key:
    """A key of an object."""

    name: str
    schema: Schema
    always: bool
    """It is there in every document."""

    @property
    def about(self) -> str:
        return str(self.schema["description"])

    @property
    def revision(self) -> int:
        """The revision of the document that added it."""
        return int(self.schema.get("x-revision", 1))


@dataclass(frozen=True)
class Type:
    """An object with keys, or a set of words."""

    name: str
    about: str
    keys: tuple[Key, ...]
    words: tuple[Schema, ...]
    """Each with `const` and `description`; none of an object."""


def types_of(schema: Schema) -> list[Type]:
    """All types, the document first, then referenced ones behind the type that refers to them."""
    found = {name: type_of(name, one) for name, one in schema["$defs"].items()}
    order = {"Document": type_of("Document", schema)}
    waiting = [order["Document"]]
    while waiting:
        one = waiting.pop(0)
        for name in (name for key in one.keys for name in names_in(key.schema)):
            if name not in order:
                order[name] = found[name]
                waiting.append(found[name])
    return list(order.values())


def type_of(name: str, schema: Schema) -> Type:
    # In the order in which they are written, which only this list keeps; then the keys that may be absent.
    required, properties = schema.get("required", []), schema.get("properties", {})
    keys = [
        Key(key, properties[key], key in required) for key in [*required, *(k for k in properties if k not in required)]
    ]
    words = [{"const": word, **schema} for word in schema.get("enum", [])] or schema.get("oneOf", [])
    return Type(name, schema["description"], tuple(keys), tuple(words))


def names_in(schema: Any) -> Iterator[str]:
    """The types that a schema refers to."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield name_of(schema)
        for one in schema.values():
            yield from names_in(one)
    elif isinstance(schema, list):
        for one in schema:
            yield from names_in(one)


def name_of(schema: Schema) -> str:
    return str(schema["$ref"]).rpartition("/")[2]


@dataclass(frozen=True)
class Language:
    """The notation of types in a language."""

    simple: dict[str, str]
    list_of: Callable[[str], str]
    pair_of: Callable[[str], str]
    tuple_of: Callable[[list[str]], str]
    anything: str

    def of(self, schema: Schema) -> str:
        """The type that a schema describes."""
        if "$ref" in schema:
            return name_of(schema)
        if alternatives := schema.get("anyOf"):
            return " | ".join(self.of(one) for one in alternatives)
        kinds = schema["type"]
        return " | ".join(self.simple_or_list(kind, schema) for kind in ([kinds] if isinstance(kinds, str) else kinds))

    def simple_or_list(self, kind: str, schema: Schema) -> str:
        if kind == "object":
            return self.anything
        if kind != "array":
            return self.simple[kind]
        if parts := schema.get("prefixItems"):
            return self.tuple_of([self.of(part) for part in parts])
        both = schema.get("minItems") == schema.get("maxItems") == 2
        return (self.pair_of if both else self.list_of)(self.of(schema["items"]))


PYTHON = Language(
    {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"},
    list_of=lambda of: f"list[{of}]",
    pair_of=lambda of: f"list[{of}]",
    tuple_of=lambda parts: f"tuple[{', '.join(parts)}]",
    anything="dict[str, Any]",
)
TYPESCRIPT = Language(
    {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"},
    list_of=lambda of: f"({of})[]" if " " in of else f"{of}[]",
    pair_of=lambda of: f"[{of}, {of}]",
    tuple_of=lambda parts: f"[{', '.join(parts)}]",
    anything="Record<string, unknown>",
)


def python_module(schema: Schema) -> str:
    """The types of Python: `python/tlplab/document.py`."""
    types = types_of(schema)
    parts = [
        f'"""The result document, `{_schema_name(schema)}`: {GENERATED}.\n\n'
        "Times that end in `_fs` are femtoseconds of simulated time, times in `_ns` nanoseconds, rates bits per second; shares and utilisations are\n"
        'fractions of 1. A *place* is a link direction, written `from → to`, or the name of a node.\n"""\n\n'
        "from __future__ import annotations\n\n"
        "from typing import Any, Literal, NamedTuple, TypedDict, overload\n\n"
        "from tlplab.rows import Rows\n\n"
        f'SCHEMA = "{_schema_name(schema)}"\n\n'
        f"__all__ = {json.dumps(['CAUSES', 'ROWS', 'SCHEMA', *sorted(['CauseStyle', 'Keys', *(one.name for one in types)])])}\n"
    ]
    parts += [python_words(one) for one in types if one.words]
    parts += [python_class(one) for one in types if one.keys]
    parts += [python_keys(types[0]), python_causes(schema)]
    return "\n\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def python_words(one: Type) -> str:
    words = ", ".join(json.dumps(word["const"]) for word in one.words)
    return f'{one.name} = Literal[{words}]\n"""{one.about}"""\n'


def python_class(one: Type) -> str:
    if any(keyword.iskeyword(key.name) for key in one.keys):
        rows = "".join(
            f"        # {key.about}\n        {json.dumps(key.name)}: {json.dumps(PYTHON.of(key.schema))},\n"
            for key in one.keys
        )
        return f'# {one.about}\n{one.name} = TypedDict(\n    "{one.name}",\n    {{\n{rows}    }},\n)\n'
    if all(key.schema.get("type") == "integer" for key in one.keys):
        # Counts by name, which are also added up.
        return f'{one.name} = dict[Literal[{", ".join(json.dumps(key.name) for key in one.keys)}], int]\n"""{one.about}"""\n'
    maybe = [key for key in one.keys if not key.always]
    base = f"{one.name}Optional" if maybe else "TypedDict"
    text = ""
    if maybe:
        text = f'class {base}(TypedDict, total=False):\n    """Keys of `{one.name}` that are not always there."""\n\n{python_fields(maybe)}\n\n'
    return f'{text}class {one.name}({base}):\n    """{one.about}"""\n\n{python_fields([key for key in one.keys if key.always])}'


def python_fields(keys: list[Key]) -> str:
    return "".join(f'    {key.name}: {PYTHON.of(key.schema)}\n    """{key.about}"""\n' for key in keys)


def python_keys(document: Type) -> str:
    """A dictionary that knows the types of its keys, and has them as attributes, too."""
    lines = [
        "class Keys(dict[str, Any]):",
        '    """A result document: a dictionary whose keys are attributes, too."""',
        "",
    ]
    for key in document.keys:
        lines += [
            "    @overload",
            f"    def __getitem__(self, key: Literal[{json.dumps(key.name)}]) -> {rows_of(key)}: ...",
        ]
    lines += [
        "    @overload",
        "    def __getitem__(self, key: str) -> Any: ...",
        "    def __getitem__(self, key: str) -> Any:",
    ]
    lines += ['        """A part of the document."""', "        return super().__getitem__(key)", ""]
    for key in document.keys:
        lines += ["    @property", f"    def {key.name}(self) -> {rows_of(key)}:", f'        """{key.about}"""']
        lines += [f"        return self[{json.dumps(key.name)}]", ""]
    rows = {key.name: name_of(key.schema["items"]) for key in document.keys if is_rows(key)}
    lines += ["", "ROWS: dict[str, Any] = {"]
    lines += [f"    {json.dumps(name)}: {kind}," for name, kind in rows.items()]
    return "\n".join(
        [*lines, "}", '"""The keys of the document that are lists of dictionaries, and the types of these."""', ""]
    )


def is_rows(key: Key) -> bool:
    """True for a list of dictionaries."""
    return key.schema.get("type") == "array" and "$ref" in key.schema["items"] and key.name != "causes"


def rows_of(key: Key) -> str:
    return f"Rows[{name_of(key.schema['items'])}]" if is_rows(key) else PYTHON.of(key.schema)


def python_causes(schema: Schema) -> str:
    rows = "".join(
        f"    CauseStyle({', '.join(json.dumps(part, ensure_ascii=False) for part in cause_row(one))}),\n"
        for one in causes_of(schema)
    )
    return (
        "class CauseStyle(NamedTuple):\n"
        '    """A cause of latency as it is shown."""\n\n'
        '    name: Cause\n    group: Literal["work", "wait", "repair", "bus"]\n    light: str\n    """Its colour on a light ground."""\n'
        f'    dark: str\n    """Its colour on a dark ground."""\n    about: str\n\n\nCAUSES = (\n{rows})\n"""All causes, in the order of `causes`."""\n'
    )


def causes_of(schema: Schema) -> list[Schema]:
    return list(schema["$defs"]["Cause"]["oneOf"])


def cause_row(one: Schema) -> tuple[str, str, str, str, str]:
    light, dark = one["x-colours"]
    return one["const"], one["x-group"], light, dark, one["description"]


def _schema_name(schema: Schema) -> str:
    return str(schema["properties"]["schema"]["const"])


def typescript_module(schema: Schema) -> str:
    """The types of the page: `report/src/document.ts`. Keys that later revisions added may be absent."""
    parts = [f'// {GENERATED[0].upper()}{GENERATED[1:]}\n\nexport const SCHEMA = "{_schema_name(schema)}";\n']
    for one in types_of(schema):
        parts.append(typescript_words(one) if one.words else typescript_interface(one))
    names = ", ".join(json.dumps(one["const"]) for one in causes_of(schema))
    parts.append(f"/** All causes, in the order of `causes`. */\nexport const CAUSES: Cause[] = [{names}];\n")
    return "\n".join(parts)


def typescript_words(one: Type) -> str:
    rows = "".join(f"\n  /** {word['description']} */\n  | {json.dumps(word['const'])}" for word in one.words)
    return f"/** {one.about} */\nexport type {one.name} ={rows};\n"


def typescript_interface(one: Type) -> str:
    name = "Result" if one.name == "Document" else one.name
    rows = ""
    for key in one.keys:
        optional = "" if key.always and key.revision == 1 else "?"
        rows += f"  /** {key.about} */\n  {key.name}{optional}: {TYPESCRIPT.of(key.schema)};\n"
    return f"/** {one.about} */\nexport interface {name} {{\n{rows}}}\n"


def style_sheet(schema: Schema) -> str:
    """The colours of causes: `report/src/causes.css`."""

    def rules(which: int, indent: str) -> str:
        return "".join(
            f"{indent}--cause-{one['const'].replace(' ', '-')}: {one['x-colours'][which]};\n"
            for one in causes_of(schema)
        )

    return (
        f"/* {GENERATED[0].upper()}{GENERATED[1:]} */\n:root {{\n{rules(0, '  ')}}}\n"
        f"@media (prefers-color-scheme: dark) {{\n  :root {{\n{rules(1, '    ')}  }}\n}}\n"
    )


def reference(schema: Schema) -> str:
    """The page about the document: `docs/result.md`."""
    types = types_of(schema)
    parts = [
        "# The result document\n\n"
        f"`tlplab run --json FILE` and `tl.run` give a document of the schema `{_schema_name(schema)}`. Times that end in `_fs` are femtoseconds of simulated time, "
        "times in `_ns` nanoseconds, rates bits per second; shares and utilisations are fractions of 1. A *place* is a link direction, written `from → to`, or the name "
        "of a node.\n\n"
        "`tlplab schema --result` prints its JSON Schema ([result.schema.json](result.schema.json)), with which any language can check a document or make types; the types of "
        "Python are in `tlplab.result`. Keys and names stay; a new key has the `revision` of the document that has it first. "
        f"This page is {GENERATED}.\n"
    ]
    names = {one.name for one in types}
    for one in types:
        parts.append(f"\n## {one.name}\n\n{one.about}\n\n" + (word_table(one) if one.words else key_table(one, names)))
    return "".join(parts)


def key_table(one: Type, names: set[str]) -> str:
    rows = [f"| `{key.name}` | {linked(key.schema, names)} | {cell(meaning(key))} |\n" for key in one.keys]
    return "| key | type | meaning |\n|---|---|---|\n" + "".join(rows)


def meaning(key: Key) -> str:
    since = f" Since revision {key.revision}." if key.revision > 1 else ""
    return key.about + since


def word_table(one: Type) -> str:
    if "x-group" in one.words[0]:
        rows = [f"| `{word['const']}` | {word['x-group']} | {cell(word['description'])} |\n" for word in one.words]
        return "| word | group | meaning |\n|---|---|---|\n" + "".join(rows)
    return "| word | meaning |\n|---|---|\n" + "".join(
        f"| `{word['const']}` | {cell(word['description'])} |\n" for word in one.words
    )


def linked(schema: Schema, names: set[str]) -> str:
    """A type in the words of JSON, with links."""
    if "$ref" in schema:
        name = name_of(schema)
        return f"[{name}](#{name.lower()})" if name in names else name
    if alternatives := schema.get("anyOf"):
        return " or ".join(linked(one, names) for one in alternatives)
    kinds = schema["type"]
    return " or ".join(in_words(kind, schema, names) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def in_words(kind: str, schema: Schema, names: set[str]) -> str:
    if kind == "array":
        if parts := schema.get("prefixItems"):
            return "list of " + ", ".join(linked(part, names) for part in parts)
        return f"list of {linked(schema['items'], names)}"
    return kind


def cell(text: str) -> str:
    return text.replace("|", r"\|")


FILES: dict[str, Callable[[Schema], str]] = {
    "docs/result.schema.json": lambda schema: json.dumps(schema, indent=2, ensure_ascii=False) + "\n",
    "docs/result.md": reference,
    "python/tlplab/document.py": python_module,
    "report/src/document.ts": typescript_module,
    "report/src/causes.css": style_sheet,
}


def current_schema() -> Schema:
    """The schema, from the extension alone: the package may name types that are about to be generated."""
    spec = importlib.util.spec_from_file_location("_core", ROOT / "python/tlplab/_core.abi3.so")
    assert spec is not None
    assert spec.loader is not None
    core = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(core)
    return dict(json.loads(core.result_schema()))


def main() -> None:
    schema = current_schema()
    for path, make in FILES.items():
        (ROOT / path).write_text(make(schema), encoding="utf-8")


if __name__ == "__main__":
    main()
