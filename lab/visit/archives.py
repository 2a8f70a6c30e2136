#!/usr/bin/env python3
"""The results of visits: each visit is one archive in lab/results/<gpu>/.

  archives.py pack FOLDER FILE.tar.xz     packs the folder of a visit; equal folders give equal archives
  archives.py unpack DIR                  unpacks every archive of lab/results into DIR/<gpu>/<visit>/

The scripts that read results read the archives themselves. Exit codes: 0 ok, 1 failed, 2 usage."""
import argparse
import io
import json
import lzma
import sys
import tarfile
from pathlib import Path

import files
from files import FAILED, OK, Bad

RESULTS = Path(__file__).resolve().parents[1] / "results"
SUFFIX = ".tar.xz"


def of_folder(folder):
    """{name: bytes} of a visit's folder, without its caches."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    names = {path: path.relative_to(folder) for path in paths}
    return {str(name): path.read_bytes() for path, name in names.items() if ".work" not in name.parts}


def of_archive(path):
    """The same of an archive, whose names begin with the name of the visit."""
    try:
        with tarfile.open(fileobj=io.BytesIO(lzma.decompress(path.read_bytes()))) as tar:
            return {each.name.partition("/")[2]: tar.extractfile(each).read() for each in tar if each.isfile()}
    except (tarfile.TarError, lzma.LZMAError) as error:
        raise Bad(f"{path}: {error}", FAILED) from error


def packed(name, contents):
    """The bytes of an archive; they depend on the name and the contents alone."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for each, data in sorted(contents.items()):
            entry = tarfile.TarInfo(f"{name}/{each}")
            entry.size, entry.mode, entry.mtime = len(data), 0o644, 0
            tar.addfile(entry, io.BytesIO(data))
    return lzma.compress(out.getvalue(), preset=9 | lzma.PRESET_EXTREME)


def visit_name(path):
    return path.name.removesuffix(SUFFIX)


def visits(folder):
    """(path, {name: bytes}) of each visit below a folder: an archive, or a folder with visit.json."""
    folder = Path(folder)
    for path in sorted({*folder.rglob(f"*{SUFFIX}"), *(each.parent for each in folder.rglob("visit.json"))}):
        if ".work" not in path.parts:
            yield path, (of_folder if path.is_dir() else of_archive)(path)


def documents(path, contents):
    """(name, document) of every file of JSON, and of every line of a file of JSON lines."""
    for name, data in contents.items():
        if not name.endswith((".json", ".jsonl")):  # logs, recorded spaces
            continue
        try:
            for text in data.splitlines() if name.endswith(".jsonl") else [data]:
                yield name, json.loads(text)
        except ValueError as error:
            raise Bad(f"{path}: {name}: {error}", FAILED) from error


def pack(options):
    if not (options.folder / "visit.json").exists():
        raise Bad(f"{options.folder} has no visit.json: it is no folder of a visit")
    if not options.archive.name.endswith(SUFFIX):
        raise Bad(f"{options.archive}: not the name of a {SUFFIX}")
    files.write(options.archive, packed(visit_name(options.archive), of_folder(options.folder)))


def unpack(options):
    for path, contents in visits(RESULTS):
        for name, data in contents.items():
            place = options.folder / path.parent.name / visit_name(path) / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)


def main(argv):
    parser = argparse.ArgumentParser(prog="archives.py", description=__doc__.split("\n\n", maxsplit=1)[0])
    commands = parser.add_subparsers(required=True)
    of_pack = commands.add_parser("pack", help="pack the folder of a visit")
    of_pack.add_argument("folder", type=Path)
    of_pack.add_argument("archive", type=Path, metavar=f"FILE{SUFFIX}")
    of_pack.set_defaults(run=pack)
    of_unpack = commands.add_parser("unpack", help="unpack every archive of lab/results")
    of_unpack.add_argument("folder", type=Path, metavar="DIR")
    of_unpack.set_defaults(run=unpack)
    options = parser.parse_args(argv)
    try:
        options.run(options)
        return OK
    except (Bad, OSError) as error:
        print(f"archives: {error}", file=sys.stderr)
        return getattr(error, "code", FAILED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
