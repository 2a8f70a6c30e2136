"""Files of a visit: atomic writes, JSON held to a schema, the archive."""
import json
import os
import tarfile
from pathlib import Path


class Bad(ValueError):
    """An input or a document that cannot be used, described in one line."""


def write(path, data):
    """Writes to a temporary name and renames: a reader sees the old file or the complete new one."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{path}.part", "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.part", path)


def to_json(document):
    return json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def parse_json(text):
    """One document; NaN and Infinity are refused. Raises Bad."""
    def refuse(name):
        raise ValueError(f"{name} is not a JSON number")
    try:
        return json.loads(text, parse_constant=refuse)
    except ValueError as error:
        raise Bad(f"not JSON: {error}") from error


def read_json(path):
    try:
        return parse_json(Path(path).read_bytes())
    except (OSError, Bad) as error:
        raise Bad(f"{path}: {error}") from error


SCHEMAS = read_json(Path(__file__).with_name("schema.json"))
_TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float),
          "null": type(None)}


def check(value, schema, where="document"):
    """Raises Bad at the first violation. Knows the keywords of JSON Schema that schema.json uses, and no others."""
    names = schema.get("type", [])
    names = names if isinstance(names, list) else [names]
    kinds = ["boolean"] if isinstance(value, bool) else [each for each in _TYPES if isinstance(value, _TYPES[each])]
    if names and not set(names) & set(kinds):
        raise Bad(f"{where}: {' or '.join(names)} expected, {type(value).__name__} found")
    if value not in schema.get("enum", [value]):
        raise Bad(f"{where}: {value!r} is not one of {', '.join(map(repr, schema['enum']))}")
    if isinstance(value, dict):
        for name in schema.get("required", []):
            if name not in value:
                raise Bad(f"{where}: {name} is missing")
        for name, part in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties", {}))
            if inner is False:
                raise Bad(f"{where}: {name} is unknown")
            check(part, inner, f"{where}.{name}")
    if isinstance(value, list):
        for index, part in enumerate(value):
            check(part, schema.get("items", {}), f"{where}[{index}]")


def archive(folder, path):
    """Packs the results and logs of a visit's folder, without its caches. Returns the size in bytes."""
    with tarfile.open(f"{path}.part", "w:gz") as tar:
        for each in sorted((*folder.glob("*.json"), *folder.glob("*.gz"), *folder.glob("logs/*.txt"))):
            tar.add(each, each.relative_to(folder.parent))
    os.replace(f"{path}.part", path)
    return os.path.getsize(path)
