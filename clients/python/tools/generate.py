"""Writes src/wirespool/_schema.py from the OpenAPI document and the fields of a service.

python tools/generate.py http://127.0.0.1:8420 TOKEN_FILE
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any

from wirespool import Client

PLACE = Path(__file__).parent.parent / "src" / "wirespool" / "_schema.py"
PYTHON = {
    "flag": "bool",
    "integer": "int",
    "text": "str",
    "time": "int",
    "duration": "int",
    "integers": "list[int]",
    "texts": "list[str]",
}
HEAD = '''"""The fields of a session. Made by tools/generate.py; change that instead."""

from __future__ import annotations

from typing import TypedDict


class Session(TypedDict, total=False):
    """A session as `wirespool find --json` prints it; absent fields are left out."""

'''


def kind(name: str, schema: dict[str, Any], fields: dict[str, dict[str, Any]]) -> str:
    """What a field holds, more exactly than JSON can say it."""
    if schema["type"] == "array":
        return {"integer": "integers", "string": "texts"}[schema["items"]["type"]]
    if schema["type"] == "integer" and fields.get(name, {}).get("kind") in ("time", "duration"):
        return str(fields[name]["kind"])
    return {"boolean": "flag", "integer": "integer", "string": "text"}[schema["type"]]


def generate(client: Client) -> str:
    """The text of the module."""
    schemas = client.openapi()["components"]["schemas"]["Session"]["properties"]
    fields = {field["name"]: field for field in client.fields()}
    names = [name for name in fields if name in schemas]
    for name in sorted(set(schemas) - set(names)):
        # `proto_name` stands behind `proto`.
        number = name[: -len("_name")]
        names.insert(names.index(number) + 1 if number in names else len(names), name)
    kinds = {name: kind(name, schemas[name], fields) for name in names}
    text = HEAD
    for name in names:
        text += f"    {name}: {PYTHON[kinds[name]]}\n"
        if meaning := schemas[name].get("description"):
            words = meaning.replace("\\", "\\\\").replace('"', '\\"')
            text += textwrap.indent("\n".join(textwrap.wrap(f'"""{words}"""', 96)), "    ") + "\n"
    text += "\n\nCOLUMNS = {\n"
    text += "".join(f'    "{name}": "{kinds[name]}",\n' for name in names)
    return text + '}\n"""What each field holds: times and durations are in nanoseconds."""\n'


if __name__ == "__main__":
    url, token_file = sys.argv[1:]
    PLACE.write_text(generate(Client(url, token_file=token_file)), encoding="ascii")
