"""Replay bundles of roofgen (docs/counters.md): kernels and their launches as plain values."""
import json
from pathlib import Path


class BadBundle(Exception):
    pass


class Bundle:
    """The bundle at `path`: a folder with replay.json, or the output folder of `roofgen emit` with it in replay/."""

    def __init__(self, path):
        places = [Path(path), Path(path, "replay.json"), Path(path, "replay", "replay.json")]
        file = next((each for each in places if each.is_file()), None)
        if not file:
            raise BadBundle(f"{path}: no replay.json; `roofgen emit OP ... -o DIR` writes one to DIR/replay")
        try:
            document = json.loads(file.read_bytes())
            if document["schema"] != "roofgen.replay.1":
                raise BadBundle(f"{file}: schema {document['schema']}; roofgen.replay.1 was expected")
            self.directory, self.problem, self.variant = file.parent, document["problem"], document["variant"]
            self.buffers = {each["name"]: each for each in document["buffers"]}
            self.kernels = [{**each, "cubin": (file.parent / each["cubin"]).read_bytes(),
                             "ptx": (file.parent / each["ptx"]).read_bytes()} for each in document["kernels"]]
            for argument in (each for kernel in self.kernels for each in kernel["launch"]["args"]):
                if argument.get("buffer") and argument["name"] not in self.buffers:
                    raise BadBundle(f"{file}: no buffer {argument['name']}")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadBundle(f"{file}: {type(error).__name__}: {error}") from None

    def stores_16_bit_scores(self):
        return any(each["role"] == "temporary" and each["dtype"] != "fp32" for each in self.buffers.values())

    def describe(self):
        keys = ("stage", "entry", "arch", "digest", "registers")
        return {"variant": self.variant, "kernels": [{key: each.get(key) for key in keys} for each in self.kernels]}
