"""Files of a visit: atomic writes, JSON of a known form, the archive."""
import json
import os
import tarfile
from pathlib import Path

OK, FAILED, USAGE, UNAVAILABLE, INTERRUPTED = 0, 1, 2, 3, 130


class Bad(ValueError):
    """An input or a document that cannot be used, described in one line. It may end the visit with this exit code."""

    def __init__(self, message, code=USAGE):
        super().__init__(message)
        self.code = code


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


# The forms of documents: a type, {member: form} ("...": others too), [form of the items], or (values or forms).
NUMBER = (int, float)
GPU = {"name": str, "uuid": str, "cuda": str, "driver": str, "ordinal": int, "...": object}
VERSIONS = {**dict.fromkeys(("roofgen", "roofgen_sha256", "nvrtc", "torch", "triton", "ncu"), str), "...": object}
DONE = {"task": str, "status": str, "seconds": NUMBER}
SCHEMAS = {
    "roofgen.visit-result.1": {
        **dict.fromkeys(("schema", "step", "task", "message", "command_digest", "started", "ended"), str),
        "status": ("ok", "failed", "cut"), "about": dict, "command": [str], "first_command": [str], "seconds": NUMBER,
        "limit_s": NUMBER, "exit_code": (int, None), "leftover_processes": int, "gpu": GPU, "versions": VERSIONS,
        "state_before": dict, "state_after": dict, "attachments": [str], "result": (dict, None)},
    "roofgen.visit.1": {
        "schema": str, "gpu": GPU, "versions": dict, "host": dict, "doctor": (dict, None), "tasks": dict,
        "visits": [{"started": str, "ended": str, "budget_s": NUMBER, "done": [DONE],
                    "stopped": ("running", "done", "interrupted", "refused")}]},
}


def check(value, form, where="document"):
    """Raises Bad where the value is not of the form."""
    if isinstance(form, dict) and isinstance(value, dict):
        for name in [each for each in form if each != "..." and each not in value]:
            raise Bad(f"{where}: {name} is missing")
        for name, part in value.items():
            if name not in form and "..." not in form:
                raise Bad(f"{where}: {name} is unknown")
            check(part, form.get(name, form.get("...")), f"{where}.{name}")
    elif isinstance(form, list) and isinstance(value, list):
        for index, part in enumerate(value):
            check(part, form[0], f"{where}[{index}]")
    else:
        choices = form if isinstance(form, tuple) else (form,)
        if not any(isinstance(value, each) if isinstance(each, type) else value == each for each in choices):
            raise Bad(f"{where}: {value!r} is not of the form {form}")


def archive(folder, path):
    """Packs the results and logs of a visit's folder, without its caches. Returns the size in bytes."""
    with tarfile.open(f"{path}.part", "w:gz") as tar:
        for each in sorted((*folder.glob("*.json"), *folder.glob("*.gz"), *folder.glob("logs/*.txt"))):
            tar.add(each, each.relative_to(folder.parent))
    os.replace(f"{path}.part", path)
    return os.path.getsize(path)
