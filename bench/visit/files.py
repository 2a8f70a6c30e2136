"""Files of a visit: written whole or not at all, and held to their schema."""
import gzip
import hashlib
import json
import os
import tarfile
import tempfile


class Bad(Exception):
    """A document that is not what it should be, in one line."""


def first_existing(path):
    """The path itself, or the nearest folder above it that is there."""
    while not os.path.lexists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def unwritable(folder):
    """Why no file can be written in a folder, or "". Tried with a file without a name: permissions alone do not tell."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def write(path, data):
    """Writes beside `path`, then renames: a reader sees the old file or the new one."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    part = f"{path}.part"
    with open(part, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def write_json(path, document):
    write(path, json.dumps(document, indent=1, allow_nan=False) + "\n")


def write_gzip(path, data):
    write(path, gzip.compress(data, mtime=0))


def _no_constant(name):
    raise ValueError(f"{name} is no JSON number")


def parse_json(text):
    """Strict: one document, no NaN or Infinity. Raises Bad."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Bad(f"not JSON: {error}") from error


def read_json(path):
    try:
        with open(path, encoding="utf-8") as file:
            return parse_json(file.read())
    except (OSError, UnicodeDecodeError) as error:
        raise Bad(f"{path}: {error}") from error
    except Bad as error:
        raise Bad(f"{path}: {error}") from error


_TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "integer": int, "number": (int, float)}


def _is(value, name):
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _TYPES[name])


def check(value, schema, where="document"):
    """The part of JSON Schema that schema.json uses: type, enum, required, properties, items and whether other
    properties may be there. Raises Bad with the first fault and its place."""
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(_is(value, name) for name in names):
            raise Bad(f"{where}: {' or '.join(names)} expected, {type(value).__name__} found")
    if "enum" in schema and value not in schema["enum"]:
        raise Bad(f"{where}: {value!r} is not one of {', '.join(map(repr, schema['enum']))}")
    if isinstance(value, dict):
        known = schema.get("properties", {})
        for name in schema.get("required", []):
            if name not in value:
                raise Bad(f"{where}: {name} is missing")
        for name, part in value.items():
            if name in known:
                check(part, known[name], f"{where}.{name}")
            elif schema.get("additionalProperties") is False:
                raise Bad(f"{where}: {name} is unknown")
    if isinstance(value, list) and "items" in schema:
        for index, part in enumerate(value):
            check(part, schema["items"], f"{where}[{index}]")


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def archive(folder, path):
    """Packs a run's folder, but for what only a later run of the same machine would use. Gives the size in bytes."""
    name = os.path.basename(folder)
    part = f"{path}.part"
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with tarfile.open(part, "w:gz") as tar:
        for root, folders, names in os.walk(folder):
            if root == folder:
                folders[:] = [each for each in folders if each != ".work"]
            folders.sort()
            for each in sorted(names):
                if not each.endswith(".part"):
                    full = os.path.join(root, each)
                    tar.add(full, os.path.join(name, os.path.relpath(full, folder)), recursive=False)
    os.replace(part, path)
    return os.path.getsize(path)
