#!/usr/bin/env python3
"""Prints the data that a time model is fitted to: kernels with both a measured time and counts, one JSON object a line.

    calibration.py [--results DIR]

Reads the results of visits (docs/visit.md). Kernels that ran only on the GPU have no counts and are left out. Kernels
of recorded spaces (*.t4.json.gz) can be counted without a GPU:
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
    for each in results:
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


def main(arguments):
    parser = argparse.ArgumentParser(prog="calibration.py", description=__doc__.split("\n\n", maxsplit=1)[0])
    results = readme_tables.results_of(parser, arguments)[1]
    for point in points(results):
        print(json.dumps(point))


if __name__ == "__main__":
    sys.exit(readme_tables.guarded("calibration", main))
