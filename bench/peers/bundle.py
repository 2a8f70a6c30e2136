"""Replay bundles of roofgen (docs/counters.md): what to launch, as plain values."""

import json
import os


class BadBundle(Exception):
    pass


class Bundle:
    def __init__(self, directory, doc, cubins, ptx):
        self.directory, self.doc, self.cubins, self.ptx = directory, doc, cubins, ptx
        self.problem, self.variant = doc["problem"], doc["variant"]
        self.buffers = {b["name"]: b for b in doc["buffers"]}
        self.kernels = doc["kernels"]

    def describe(self):
        return {"variant": self.variant, "kernels": [{k: x.get(k) for k in ("stage", "entry", "arch", "digest", "registers")} for x in self.kernels]}


def read(path):
    """The bundle at `path`: a folder with replay.json, or one of `roofgen emit` that has it in replay/."""
    for candidate in (path, os.path.join(path, "replay.json"), os.path.join(path, "replay", "replay.json")):
        if os.path.isfile(candidate):
            break
    else:
        raise BadBundle(f"{path}: no replay.json; `roofgen emit OP ... -o DIR` writes one to DIR/replay")
    folder = os.path.dirname(candidate)
    try:
        with open(candidate, encoding="utf-8") as f:
            doc = json.load(f)
        if doc.get("schema") != "roofgen.replay.1":
            raise BadBundle(f"{candidate}: schema {doc.get('schema')!r}; roofgen.replay.1 was expected")
        cubins, ptx = [], []
        for k in doc["kernels"]:
            for key, into in (("cubin", cubins), ("ptx", ptx)):
                name = k[key]
                if os.path.basename(name) != name or name.startswith("."):
                    raise BadBundle(f"{candidate}: {name!r} is no file in the same folder")
                with open(os.path.join(folder, name), "rb") as f:
                    into.append(f.read())
        check(doc)
        return Bundle(folder, doc, cubins, ptx)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadBundle(f"{candidate}: {type(error).__name__}: {error}") from None


def check(doc):
    names = {b["name"] for b in doc["buffers"]}
    for b in doc["buffers"]:
        if not isinstance(b["bytes"], int) or b["bytes"] < 0 or b["role"] not in ("input", "temporary", "output"):
            raise ValueError(f"buffer {b['name']}")
    for k in doc["kernels"]:
        launch = k["launch"]
        for key in ("grid", "block", "cluster"):
            if len(launch[key]) != 3 or any(not isinstance(v, int) or v < 1 for v in launch[key]):
                raise ValueError(f"{key} of {k['entry']}")
        for a in launch["args"]:
            if a.get("buffer") and a["name"] not in names:
                raise ValueError(f"{k['entry']} takes a buffer {a['name']} that is not there")
            if not a.get("buffer") and (not isinstance(a["bits"], int) or a["bytes"] not in (4, 8)):
                raise ValueError(f"argument {a['name']} of {k['entry']}")
