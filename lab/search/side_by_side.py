#!/usr/bin/env python3
"""Replays the strategies of Kernel Tuner and of roofgen on the same recorded spaces, in one run.

    python3 -m venv V && V/bin/pip install kernel_tuner==1.4.0 'numpy>=2'
    V/bin/python lab/search/side_by_side.py --roofgen build/cli/roofgen FILE.json.gz...

FILE is a cachefile of Kernel Tuner. Each strategy of Kernel Tuner runs in its simulation mode with its defaults; an
evaluation is the first visit of a point, failed ones included. Prints, for each strategy, the mean over spaces and
seeds of (best time recorded / best time found) after 10, 25, 50, 100 and 200 evaluations, and the time of the strategy
per evaluation. A version without a strategy leaves its row out: 1.3.3 has hill climbers that 1.4.0 changed.
"""

import argparse
import gzip
import importlib.metadata
import json
import math
import random
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
from kernel_tuner import util
from kernel_tuner.interface import Options, _tuning_options, strategy_map
from kernel_tuner.runners.simulation import SimulationRunner
from kernel_tuner.searchspace import Searchspace

BUDGETS = (10, 25, 50, 100, 200)
STRATEGIES = ("adaptive_tabu_greywolf", "hybrid_vndx", "genetic_algorithm", "simulated_annealing", "dual_annealing",
              "pso", "firefly_algorithm", "diff_evo", "bayes_opt", "greedy_mls", "greedy_ils", "mls",
              "ordered_greedy_mls", "random_sample")


class VisitedCache(dict):
    """The recorded points, which notes the order of the first visits."""

    def start(self):
        self.visits = {}

    def __getitem__(self, key):
        result = super().__getitem__(key)
        self.visits.setdefault(key, result["time"])
        return result


class Space:
    def __init__(self, path):
        with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
            recorded = json.load(file)
        self.cache = VisitedCache()
        for key, result in recorded["cache"].items():
            if not is_time(result["time"]):
                # Cachefiles name the class of a failure; the runner compares with the class itself.
                result["time"] = result["__error__"] = getattr(util, str(result["time"]), util.RuntimeFailedConfig)()
            self.cache[key] = result
        self.kernel = recorded["kernel_name"]
        self.params = recorded["tune_params"]
        self.recorded = recorded["cache"]
        self.best = min(r["time"] for r in self.cache.values() if is_time(r["time"]))

    def run(self, strategy, seed):
        """Fractions of the optimum after each budget, the seconds of the run, and the evaluations that it used."""
        random.seed(seed)
        np.random.seed(seed)
        options = Options(dict.fromkeys(_tuning_options))
        options.update(
            tune_params=self.params, restrictions=[], restrictions_unmodified=[], cache=self.cache, cachefile=None,
            simulation_mode=True, objective=["time"], objective_higher_is_better=[False], metrics=None, verify=None,
            verbose=False, strategy_options=Options(max_fevals=BUDGETS[-1]), simulated_time=0,
            max_fevals=BUDGETS[-1], seed=seed, snap=True, scaling=False)
        if hasattr(util, "TuningBudget"):  # 1.4
            options["budget"] = util.TuningBudget(None, BUDGETS[-1])
        else:  # 1.3
            options.update(objective="time", objective_higher_is_better=False, unique_results={})
        # A search space of its own for each run: it keeps the neighbours that earlier runs have used up.
        space = Searchspace(None, None, None, from_cache={"tune_params": self.params, "cache": self.recorded})
        runner = SimulationRunner(None, Options(kernel_name=self.kernel), Options(quiet=True), 7, None)
        self.cache.start()
        begun = time.process_time()
        try:
            strategy_map[strategy].tune(space, runner, options)
        except util.StopCriterionReached:
            pass
        seconds = time.process_time() - begun
        times = list(self.cache.visits.values())
        fractions = []
        for budget in BUDGETS:
            found = [t for t in times[:budget] if is_time(t)]
            fractions.append(self.best / min(found) if found else 0)
        return fractions, seconds, len(times)


def is_time(value):
    return isinstance(value, (int, float)) and math.isfinite(value)


def roofgen_rows(program, files, seeds):
    for strategy in ("portfolio", "surrogate"):
        command = [program, "replay", *files, "--strategy", strategy, "--seeds", str(seeds), "--json"]
        run = subprocess.run(command + ["--evals", ",".join(map(str, BUDGETS))], capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(run.stderr)
        spaces = json.loads(run.stdout)["spaces"]
        means = [statistics.mean(s["mean_fraction_of_optimum"][str(b)] for s in spaces) for b in BUDGETS]
        yield f"roofgen {strategy}", means, None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--roofgen", default="build/cli/roofgen")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--strategies", default=",".join(STRATEGIES))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    spaces = [Space(path) for path in args.files]
    version = importlib.metadata.version("kernel_tuner")
    print(f"{len(spaces)} spaces, seeds 1 to {args.seeds}, Kernel Tuner {version}, numpy {np.__version__}")
    print(f"{'strategy':40}" + "".join(f"{b:>8}" for b in BUDGETS) + f"{'us/eval':>10}")

    def show(name, means, overhead):
        print(f"{name:40}" + "".join(f"{m:8.3f}" for m in means) + (f"{overhead:10.0f}" if overhead else ""),
              flush=True)

    for row in roofgen_rows(args.roofgen, args.files, args.seeds):
        show(*row)
    for strategy in args.strategies.split(","):
        if strategy not in strategy_map:
            continue
        sums, seconds, evaluations = np.zeros(len(BUDGETS)), 0.0, 0
        failure, failures = None, 0
        for space in spaces:
            for seed in range(1, args.seeds + 1):
                try:
                    fractions, spent, used = space.run(strategy, seed)
                except Exception as error:  # a strategy that does not survive a failed point
                    failure = failure or f"{type(error).__name__}: {error}"
                    failures += 1
                    continue
                sums += fractions
                seconds += spent
                evaluations += used
        means = list(sums / (len(spaces) * args.seeds))
        show(f"Kernel Tuner {strategy}", means, 1e6 * seconds / max(evaluations, 1))
        if failure:
            print(f"{strategy}: {failures} runs that failed count as 0: {failure}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
