#!/usr/bin/env python3
"""Compares the time models with published measurements of Blackwell GPUs; writes a table, and a CSV file of kernels.

    blackwell.py --lab build/lab/fidelity/blackwell/blackwell --roofgen build/cli/roofgen --microbench DIR
        --learn-cuda DIR [--write docs/evidence/blackwell.md]

Needs no GPU. --microbench: a checkout of SemiAnalysisAI/microbench-blackwell at 9a068d8; --learn-cuda: of
gau-nernst/learn-cuda at 9324ef1. Exit codes: 0 ok, 1 failed, 2 usage.
"""
import argparse
import csv
import io
import math
import statistics
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import ladder  # noqa: E402
import stats  # noqa: E402
from kernels import Bad, guarded  # noqa: E402

BEGIN, END = "<!-- results:begin blackwell -->", "<!-- results:end blackwell -->"
CLOCK_MHZ = 1965  # of the published cycles: the highest of a B200


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Bad((done.stderr.strip() or "no message").splitlines()[-1], 1)
    return done.stdout


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def percent(value, digits=1):
    return f"{100 * value:.{digits}f} %"


def row(name, measured, modelled, scale=1.0):
    """A row of the table, of times (or of intervals) and the scale that the models are multiplied with."""
    errors = [abs(scale * p / m - 1) for p, m in zip(modelled, measured)]
    rho = stats.spearman(modelled, measured)
    return [name, len(errors), f"{scale:.2f}", f"{rho:.3f}", percent(statistics.mean(errors), 2), percent(max(errors))]


def scale_of(measured, modelled):
    return math.exp(statistics.mean([math.log(m / p) for m, p in zip(measured, modelled)]))


def products(options):
    found = rows(run([options.lab, HERE, "products", options.microbench / "umma_latency/fit_results.csv"]))
    for what in ("interval", "latency"):
        for group, name in (("1", "one CTA"), ("2", "pairs")):
            some = [one for one in found if one["group"] == group]
            yield row(f"{what}, {name}", [float(one[f"measured_{what}"]) for one in some],
                      [float(one[what]) for one in some])


def loops(options):
    found = [one for one in rows(run([options.lab, HERE, "loops", options.microbench /
                                      "cutlass_gemm_mainloop/results.csv"])) if one["measured_ms"]]
    measured = [float(one["measured_ms"]) for one in found]
    modelled = [float(one["cycles"]) / CLOCK_MHZ / 1e3 for one in found]
    scale = scale_of(measured[::2], modelled[::2])
    yield row("main loops, fitted half", measured[::2], modelled[::2], scale)
    yield row("main loops, other half", measured[1::2], modelled[1::2], scale)


def gemms(options, work):
    """(device, name, published us, modelled us) of each step."""
    for step, us, report in ladder.modelled(options.roofgen, options.learn_cuda, work):
        if isinstance(report, str):
            raise Bad(f"{step[0]}: {report}", 1)
        yield "b200", step[0], us, report["models"]["event"]["time_us"]


def geforce(options, work):
    out = work / "5090.csv"
    run([sys.executable, HERE.parent / "published.py", "--roofgen", options.roofgen, "--learn-cuda",
         options.learn_cuda, "--only", "5090", "--no-ladder", "--work", work / "5090", "--csv", out])
    for one in rows(out.read_text()):
        if "5090" in one["group"]:
            yield "rtx-5090", one["kernel"], float(one["published_us"]), float(one["event_us"])


def main(arguments):
    made = argparse.ArgumentParser(prog="blackwell.py", description=__doc__.split("\n\n", maxsplit=1)[0])
    for name in ("--lab", "--roofgen", "--microbench", "--learn-cuda"):
        made.add_argument(name, type=Path, required=True)
    made.add_argument("--write", type=Path)
    options = made.parse_args(arguments)
    lines, points = [*products(options), *loops(options)], []
    with tempfile.TemporaryDirectory() as folder:
        for name, found in (("GEMMs, B200", gemms(options, Path(folder))),
                            ("GEMMs and attention, RTX 5090", geforce(options, Path(folder)))):
            kernels = list(found)
            published, modelled = [one[2] for one in kernels], [one[3] for one in kernels]
            scale = scale_of(published, modelled)
            lines.append(row(name, published, modelled, scale))
            points += [[*one[:2], f"{one[2]:.1f}", f"{one[3]:.1f}", f"{100 * (scale * one[3] / one[2] - 1):+.1f}"]
                       for one in kernels]
    table = "\n".join(f"| {' | '.join(map(str, line))} |" for line in [
        ["", "points", "scale", "rho", "mean error", "worst"], ["---"] * 6, *lines])
    if not options.write:
        print(table)
    else:
        before, rest = options.write.read_text().split(BEGIN)
        options.write.write_text(f"{before}{BEGIN}\n{table}\n{END}{rest.split(END)[1]}")
    with (options.write.with_suffix(".csv").open("w", newline="") if options.write else
          nullcontext(sys.stdout)) as out:
        csv.writer(out, lineterminator="\n").writerows([
            ["device", "kernel", "published_us", "modelled_us", "error_after_scale_percent"], *points])
    return 0


if __name__ == "__main__":
    sys.exit(guarded("blackwell.py", main, sys.argv[1:]))
