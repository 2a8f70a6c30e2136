#!/usr/bin/env python3
"""Compares the time models of `roofgen profile` with recorded tuning spaces, for docs/evidence/fidelity.md.

    fidelity.py --roofgen build/cli/roofgen --spaces DIR --hub DIR --ktt DIR [--write docs/evidence/fidelity.md]

Needs no GPU. --spaces: folder with the recorded spaces (spaces.py lists them). --hub, --ktt: checkouts with their
kernels (kernels.py). Points are drawn at random without regard to their times, and each is profiled once: results are
kept in --work, and a killed run goes on. Exit codes: 0 ok, 1 failed, 2 usage.
"""
import argparse
import csv
import json
import os
import random
import shlex
import sys
from pathlib import Path

import kernels
import profiles
import recordings
import report
import results
import spaces
from kernels import Bad


def count_or_all(text):
    """A number of points, or None for all."""
    if text == "all":
        return None
    if not text.isdigit() or int(text) < 2:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number above 1 nor all")
    return int(text)


def positive(text):
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def version_and_path(text):
    version, _, path = text.partition("=")
    if not version or not Path(path).exists():
        raise argparse.ArgumentTypeError(f"{text!r} is not VERSION=PATH of an NVRTC library or folder")
    return version, path


def parser():
    made = argparse.ArgumentParser(prog="fidelity.py", description=__doc__.split("\n\n", maxsplit=1)[0])
    made.add_argument("--roofgen", type=Path, required=True, metavar="FILE")
    made.add_argument("--spaces", type=Path, required=True, metavar="DIR", help="recorded spaces")
    made.add_argument("--hub", type=Path, metavar="DIR", help="checkout of AutoTuningAssociation/benchmark_hub")
    made.add_argument("--ktt", type=Path, metavar="DIR", help="checkout of HiPerCoRe/KTT")
    made.add_argument("--milo", type=Path, metavar="DIR",
                      help="checkout of MiloLurati/AutoTuning_AMD_vs_Nvidia_GPUs: convolution as measured [the hub's]")
    made.add_argument("--nvrtc", type=version_and_path, action="append", default=[], metavar="VERSION=PATH",
                      help="compiler for the spaces that were measured with this version [the one that roofgen finds]")
    made.add_argument("--only", action="append", default=[], metavar="SPACE", help="this space; repeatable")
    made.add_argument("--role", choices=(spaces.FIT, spaces.REPORT), help="only spaces with this role")
    made.add_argument("--points", type=count_or_all, default=500, metavar="N", help="of each space, or all [500]")
    made.add_argument("--pairs", type=positive, default=2000, metavar="N", help="pairs of each space [2000]")
    made.add_argument("--seed", type=int, default=1, help="of the draws [1]")
    made.add_argument("--jobs", type=positive, default=1, metavar="N", help="calls of roofgen at a time [1]")
    made.add_argument("--timeout", type=positive, default=600, metavar="S", help="seconds for one point [600]")
    made.add_argument("--work", type=Path, default=Path("fidelity-work"), metavar="DIR",
                      help="where results are kept [fidelity-work]")
    made.add_argument("--model-version", default="", metavar="V", help="use the results kept for this version, and run "
                      "roofgen only for those that are missing")
    made.add_argument("--extra", action="append", default=[], metavar="ARG", help="argument for roofgen; repeatable")
    made.add_argument("--write", type=Path, metavar="FILE", help="Markdown file whose tables are replaced [print]")
    made.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    made.add_argument("--csv", type=Path, metavar="FILE", help="write a line for each point")
    made.add_argument("--explain", nargs=2, metavar=("SPACE", "N"), help="print the N worst points of a space instead")
    made.add_argument("--model", default="event", help="the model of --explain and --recordings [event]")
    made.add_argument("--commands", nargs=2, metavar=("SPACE", "N"),
                      help="print the calls of roofgen for the first N points drawn, and run nothing")
    made.add_argument("--times", type=Path, metavar="FILE",
                      help="write the points drawn as times for roofgen calibrate, and run nothing")
    made.add_argument("--recordings", type=Path, metavar="DIR", help="write the points drawn of each space, with the "
                      "times of --model as predictions, as DIR/SPACE.t4.json.gz for roofgen replay")
    made.add_argument("--family", metavar="PARAMETER",
                      help="with --times: a family for each value of this parameter [one for each space]")
    return made


def drawn(points, count, seed):
    """Without regard to their times: the order of the keys, then a seeded draw. A larger draw contains each smaller
    one, so that a run with more points goes on with the results of the run before."""
    if count is None or count >= len(points):
        return points
    return random.Random(seed).sample(points, len(points))[:count]


def profiler(options):
    for name in ("roofgen", "spaces", "hub", "ktt", "milo"):
        path = getattr(options, name)
        if path and not (path.is_file() if name == "roofgen" else path.is_dir()):
            raise Bad(f"--{name} {path}: no such {'file' if name == 'roofgen' else 'folder'}")
    checkouts = kernels.Checkouts(hub=options.hub, ktt=options.ktt, work=options.work / "sources", milo=options.milo)
    return profiles.Profiler(roofgen=options.roofgen.resolve(), checkouts=checkouts, work=options.work,
                             nvrtc=dict(options.nvrtc), extra=tuple(options.extra), jobs=options.jobs,
                             timeout_s=options.timeout, model_version=options.model_version)


def chosen(options):
    listed = spaces.named(options.only)
    return [space for space in listed if options.role in (None, space.role)]


def shell(profile, space, point):
    variables = profile.environment(space)
    prefix = f"ROOFGEN_NVRTC={shlex.quote(variables['ROOFGEN_NVRTC'])} " if variables else ""
    return prefix + shlex.join(profile.command(space, profile.launch(space, point)))


def one_space(options, words):
    """(space, points drawn, N) of --explain and --commands."""
    name, count = words
    if not count.isdigit():
        raise Bad(f"{count!r} is not a number of points")
    space = spaces.named([name])[0]
    return space, drawn(spaces.load(space, options.spaces)[0], options.points, options.seed), int(count)


def print_commands(options, profile):
    space, points, count = one_space(options, options.commands)
    for point in random.Random(options.seed).sample(points, min(count, len(points))):
        print(f"# measured {point.time_us:.1f} us\n{shell(profile, space, point)}")


def timed(options, profile, space, point):
    """A point as an item of a file of times (docs/use/calibrate.md)."""
    launch = profile.launch(space, point)
    if options.family and options.family not in point.config:
        raise Bad(f"--family {options.family}: {space.name} has {', '.join(point.config)}")
    def relative(path):
        return os.path.relpath(path, options.times.parent)
    return {"family": f"{space.name} {options.family}={point.config[options.family]}" if options.family else space.name,
            "file": relative(launch.source), "kernel": launch.kernel, "grid": launch.grid, "block": launch.block,
            "smem_bytes": launch.smem, "args": relative(kernels.args_file(launch, profile.checkouts.work)),
            "defines": [f"{name}={value}" for name, value in launch.defines.items()],
            "include_dirs": [relative(folder) for folder in launch.includes], "time_us": point.time_us}


def write_times(options, profile):
    listed = chosen(options)
    devices = sorted({space.device for space in listed})
    if len(devices) != 1:
        raise Bad(f"--times is for spaces of one device; these are of {', '.join(devices) or 'none'}")
    items = [timed(options, profile, space, point) for space in listed
             for point in drawn(spaces.load(space, options.spaces)[0], options.points, options.seed)]
    names = ", ".join(space.name for space in listed)
    measured = f"recorded spaces {names} of {devices[0]} (docs/evidence/fidelity.md)"
    document = {"schema": "roofgen.times.1", "measured": measured, "kernels": items}
    options.times.write_text(json.dumps(document, indent=1))


def check_model(options, rows):
    good = [row for row in rows if row.profile]
    if good and options.model not in results.models_of(good):
        raise Bad(f"--model {options.model}: there are {', '.join(results.models_of(good))}")


def write_recordings(options, profile):
    options.recordings.mkdir(parents=True, exist_ok=True)
    for space in chosen(options):
        rows = profile.rows(space, drawn(spaces.load(space, options.spaces)[0], options.points, options.seed))
        check_model(options, rows)
        for line in report.failure_lines(space, rows):
            print(f"fidelity: {line}", file=sys.stderr)
        if not any(row.profile for row in rows):
            raise Bad(f"{space.name}: no point has a prediction", 1)
        recordings.write(options.recordings / f"{space.name}.t4.json.gz", recordings.t4(space, rows, options.model))


def print_explanation(options, profile):
    space, points, count = one_space(options, options.explain)
    rows = profile.rows(space, points)
    check_model(options, rows)
    print(report.explain(rows, count, options.model, lambda row: shell(profile, space, row.point)), end="")


def judged(options, profile):
    """The figures of all chosen spaces, the pooled errors of differences, the bands, (space, rows) of each space."""
    figures, rows_of, errors_of = [], [], []
    for space in chosen(options):
        valid, recorded = spaces.load(space, options.spaces)
        rows = profile.rows(space, drawn(valid, options.points, options.seed))
        for line in report.failure_lines(space, rows):
            print(f"fidelity: {line}", file=sys.stderr)
        figures.append(results.space_figures(space, rows, valid, recorded, profile.compiler(space)))
        errors_of.append((space, results.pair_errors(rows, options.pairs, options.seed)))
        rows_of.append((space, rows))
    if not figures:
        raise Bad("no space is left by --only and --role")
    for each, (_, errors), (_, rows) in zip(figures, errors_of, rows_of):
        for name, of_pairs in (("differences", errors), ("neighbours", results.neighbour_errors(rows))):
            each[name] = {model: results.difference_figures(group) for model, group in of_pairs.items()}
    return figures, results.pooled_differences(errors_of), results.bands(rows_of, errors_of), rows_of


def write_tables(options, profile):
    figures, pools, bands, rows_of = judged(options, profile)
    text = report.markdown(figures, pools, bands, profile.model_version, options)
    if options.json:
        options.json.write_text(json.dumps({"model_version": profile.model_version, "points": options.points,
                                            "pairs": options.pairs, "seed": options.seed, "spaces": figures,
                                            "pooled_differences": pools, "bands": bands}, indent=1))
    if options.csv:
        with options.csv.open("w", newline="") as out:
            csv.writer(out).writerows(report.csv_table(rows_of))
    if options.write:
        report.write(options.write, text)
    else:
        print(text, end="")


def main(arguments):
    options = parser().parse_args(arguments)
    profile = profiler(options)
    if options.times:
        write_times(options, profile)
    elif options.recordings:
        write_recordings(options, profile)
    elif options.commands:
        print_commands(options, profile)
    elif options.explain:
        print_explanation(options, profile)
    else:
        write_tables(options, profile)
    return 0


if __name__ == "__main__":
    sys.exit(kernels.guarded("fidelity", main, sys.argv[1:]))
