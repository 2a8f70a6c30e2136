"""Files of a visit: atomic writes, JSON, the archive."""
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


def lines(path):
    """The objects of a file of JSON lines; a last line that was cut off is left out."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            pass
    return found


def archive(folder, path):
    """Packs the results and logs of a visit's folder, without its caches."""
    with tarfile.open(f"{path}.part", "w:gz") as tar:
        for each in sorted((*folder.glob("*.json"), *folder.glob("*.jsonl"), *folder.glob("logs/*.txt"))):
            tar.add(each, each.relative_to(folder.parent))
    os.replace(f"{path}.part", path)
