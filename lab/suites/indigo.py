#!/usr/bin/env python3
"""Runs `roofgen check` on the kernels of Indigo as HiRace's artifact has them, and counts what is found.

  lab/suites/indigo.py FOLDER GRAPH GRID BLOCK [--roofgen PROGRAM] [--jobs N]

FOLDER is the artifact's `indigo` (docs/evidence/check-suites.md), GRAPH a file of its `input` without .egr. A kernel is
labelled by its name: atomicBug, guardBug, raceBug and syncBug are races, boundsBug is an index past the end.
Prints found and false by label, and the names of the kernels that disagree with their label."""
import argparse
import collections
import concurrent.futures
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def arguments(graph):
    """The arguments of every kernel: the graph by rows, two arrays of random numbers, the number of vertices."""
    numbers = [at[0] for at in struct.iter_unpack("<i", graph.read_bytes())]
    vertices, edges = numbers[:2]
    rows, neighbours = numbers[2:vertices + 3], numbers[vertices + 3:vertices + 3 + edges]
    size = max(vertices, edges)
    draw = random.Random(1)
    return [{"name": "nindex", "type": "i32", "size": vertices + 1, "values": rows},
            {"name": "nlist", "type": "i32", "size": edges, "values": neighbours},
            {"name": "data1", "type": "i32", "size": size,
             "values": [0] + [draw.randrange(vertices) for _ in range(size - 1)]},
            {"name": "data2", "type": "i32", "size": size,
             "values": [0] + [draw.randrange(edges) for _ in range(size - 1)]},
            {"type": "i32", "value": vertices}]


def check(options, kernel, given):
    """The kinds of the findings, or the reason why there is no report."""
    done = subprocess.run(
        [options.roofgen, "check", kernel, "-I", options.folder / "indigo_include", "--kernel", "test_kernel",
         "--grid", options.grid, "--block", options.block, "--args", given, "--json", "--jobs", "1",
         "--allow-incomplete"],
        capture_output=True, text=True)
    if done.returncode > 1:
        return done.stderr.strip()
    return {finding["kind"] for finding in json.loads(done.stdout)["findings"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("graph")
    parser.add_argument("grid")
    parser.add_argument("block")
    parser.add_argument("--roofgen", default=str(ROOT / "build/cli/roofgen"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    kernels = sorted((options.folder / "indigo_sources").glob("*/*.cu"))
    if not kernels:
        sys.exit(f"{options.folder}: no kernels in indigo_sources")
    labels = {"race": (re.compile("(atomic|guard|race|sync)Bug"), {"race", "unfenced", "barrier-order", "deadlock"}),
              "out-of-bounds": (re.compile("boundsBug"), {"out-of-bounds"})}
    counts, disagree = collections.Counter(), []
    with tempfile.NamedTemporaryFile("w", suffix=".json") as given:
        json.dump(arguments(options.folder / "input" / f"{options.graph}.egr"), given)
        given.flush()
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for kernel, found in zip(kernels, pool.map(lambda k: check(options, k, given.name), kernels)):
                if isinstance(found, str):
                    sys.exit(f"{kernel.stem}: {found}")
                for label, (name, kinds) in labels.items():
                    is_bad, is_found = bool(name.search(kernel.stem)), bool(found & kinds)
                    counts[label, is_bad, is_found] += 1
                    if is_bad != is_found:
                        disagree.append(f"{label} {'missed' if is_bad else 'false'}: {kernel.stem}")
    for label in labels:
        bad, good = (sum(counts[label, is_bad, found] for found in (False, True)) for is_bad in (True, False))
        where = f"{options.graph}, {options.grid} x {options.block}: {label}"
        print(f"{where} found in {counts[label, True, True]} of {bad} labelled kernels, "
              f"in {counts[label, False, True]} of the {good} others")
    print("\n".join(disagree))


if __name__ == "__main__":
    main()
