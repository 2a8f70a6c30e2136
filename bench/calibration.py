#!/usr/bin/env python3
"""Prints what a time model is fitted to: kernels that were both timed on a GPU and counted, one JSON object a line.

    calibration.py [--results DIR]

Reads the results of visits (docs/visit.md). A kernel that only ran on the GPU has no counts and is left out; those of
recorded spaces (*.t4.json.gz) can be counted anywhere: `roofgen tune ... --executor sim --variant V --set ... --evals 1 --json`.
"""
import argparse
import json
import os
import sys

import readme_tables

# What a kernel's time may depend on; the others of docs/tune-schema.json follow from these.
COUNTS = ("registers", "spill_bytes", "smem_bytes", "threads", "ctas", "ctas_per_sm", "occupancy", "waves", "dram_bytes", "l2_bytes",
          "smem_wavefronts", "flops", "exps", "smem_excess", "non_mma_per_mma", "narrow_load_lanes", "compulsory_bytes")


def points(results):
    for each in results:
        document = each["result"]
        if not isinstance(document, dict) or document.get("schema") != "roofgen.tune.1" or document["device"]["origin"] != "measured":
            continue
        for variant in document["variants"]:
            for kernel in variant.get("kernels", []):
                measurement = kernel.get("measurement")
                if not measurement or kernel.get("counted") is not True or not variant.get("verified"):
                    continue
                yield {"gpu": each["gpu"]["name"], "uuid": each["gpu"]["uuid"], "driver": each["gpu"]["driver"], "measured_at": each["started"],
                       "roofgen": each["versions"]["roofgen"], "problem": document["problem"], "variant": variant["name"], "kernel": kernel["name"],
                       "params": kernel["schedule"]["params"], "digest": kernel["digest"], "counts": {name: kernel[name] for name in COUNTS},
                       "origins": kernel["origins"], "cold": measurement["cold"], "hot": measurement["hot"], "sm_mhz": measurement["sm_mhz"],
                       "model_time_us": kernel.get("model_time_us")}


def main(arguments):
    parser = argparse.ArgumentParser(prog="calibration.py", description=__doc__.split("\n\n", maxsplit=1)[0])
    readme_tables.add_results(parser)
    options = parser.parse_args(arguments)
    if not readme_tables.results_there(parser, options):
        return 2
    try:
        for point in points(readme_tables.load(options.results)):
            print(json.dumps(point))
    except (readme_tables.Bad, KeyError, TypeError) as error:
        print(f"calibration: {error!r}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
