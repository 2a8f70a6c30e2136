#!/usr/bin/env python3
"""Prints the data that a time model is fitted to: kernels with both a measured time and counts, one JSON object a line.

    calibration.py [--results DIR]

Reads the results of visits (docs/evidence/visit.md). Of the rows of a package only cases marked `fit` count: a model
that is fitted to all has nothing left to be judged by. Kernels that ran only on the GPU have no counts and are left
out.
Kernels of recorded spaces (*.t4.json.gz) can be counted without a GPU:
`roofgen tune ... --executor sim --variant V --set ... --evals 1 --json`.
"""
import argparse
import json
import sys

import readme_tables

# Counts that a kernel's time may depend on; the others in docs/tune-schema.json follow from these.
COUNTS = ("registers", "spill_bytes", "smem_bytes", "threads", "ctas", "ctas_per_sm", "occupancy", "waves",
          "dram_bytes", "l2_bytes", "smem_wavefronts", "flops", "exps", "smem_excess", "non_mma_per_mma",
          "narrow_load_lanes", "compulsory_bytes")


def points(results):
    for each in readme_tables.good(results):
        document, gpu = each["result"], each["gpu"]
        if document.get("schema") != "roofgen.tune.1" or document["device"]["origin"] != "measured":
            continue
        verified = [variant for variant in document["variants"]
                    if variant.get("verified") or variant.get("partly_verified")]
        for variant, kernel in ((variant, kernel) for variant in verified for kernel in variant["kernels"]):
            measurement = kernel.get("measurement")
            if measurement and kernel.get("counted"):
                yield {"gpu": gpu["name"], "uuid": gpu["uuid"], "driver": gpu["driver"],
                       "measured_at": each["started"], "roofgen": each["versions"]["roofgen"],
                       "problem": document["problem"], "variant": variant["name"], "kernel": kernel["name"],
                       "params": kernel["schedule"]["params"], "digest": kernel["digest"],
                       "counts": {name: kernel[name] for name in COUNTS}, "origins": kernel["origins"],
                       "cold": measurement["cold"], "hot": measurement["hot"], "sm_mhz": measurement["sm_mhz"],
                       "model_time_us": kernel.get("model_time_us")}


def points_of_rows(rows):
    """The same of a package's rows: variants of one kernel, whose counts were made at home."""
    for row in (row for row in rows if row["use"] == "fit"):
        for entry in row["entries"]:
            if not entry["ours"] or entry["state"] != "timed" or len(entry["counts"]) != 1:
                continue
            times = {way: readme_tables.microseconds(timing) for way, timing in entry["timings"].items()}
            yield {"gpu": row["gpu"]["name"], "uuid": row["gpu"]["uuid"], "driver": row["gpu"].get("driver"),
                   "measured_at": row["started"], "problem": row["problem"], "variant": entry["schedule"]["variant"],
                   "params": entry["schedule"]["kernels"][0], "counts": entry["counts"][0], **times,
                   "sm_mhz": row["clock"].get("sm_mhz"), "model_time_us": entry["predicted_us"]}


def main(arguments):
    parser = argparse.ArgumentParser(prog="calibration.py", description=__doc__.split("\n\n", maxsplit=1)[0])
    _, results, rows = readme_tables.results_of(parser, arguments)
    for point in (*points(results), *points_of_rows(rows)):
        print(json.dumps(point))


if __name__ == "__main__":
    sys.exit(readme_tables.guarded("calibration", main))
