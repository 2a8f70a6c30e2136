#!/usr/bin/env python3
"""Prints the time of a build by folder, and its slowest objects: build_time.py [BUILD_FOLDER] [--most N].

Reads ninja's log, so the build must be ninja's and from nothing. An object's time is wall time while as many compilers
as jobs ran; on idle cores that is its CPU time.
"""
import argparse
import collections
import pathlib

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("build", nargs="?", default="build", type=pathlib.Path)
parser.add_argument("--most", default=15, type=int, help="objects to list [15]")
options = parser.parse_args()

seconds = {}  # by output; the last build of an output counts
for line in (options.build / ".ninja_log").read_text().splitlines():
    if not line.startswith("#"):
        begin, end, _, output, _ = line.split("\t")
        seconds[output] = (int(end) - int(begin)) / 1000

folders = collections.defaultdict(list)
for output, time in seconds.items():
    if output.endswith((".o", ".gch")):
        folders[output.split("/CMakeFiles/")[0]].append(time)
    else:
        folders["linking and generated files"].append(time)

print(f"{'folder':<32}{'files':>6}{'seconds':>10}")
for folder, times in sorted(folders.items(), key=lambda item: -sum(item[1])):
    print(f"{folder:<32}{len(times):>6}{sum(times):>10.1f}")
print(f"{'all':<32}{len(seconds):>6}{sum(seconds.values()):>10.1f}\n")
for output, time in sorted(seconds.items(), key=lambda item: -item[1])[:options.most]:
    print(f"{time:8.1f}  {output}")
