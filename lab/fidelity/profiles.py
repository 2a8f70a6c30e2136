"""Runs `roofgen profile` on points of a space and keeps the results, so that a killed run goes on where it stopped.

A result is kept in WORK/profiles/<model version>/<space>/<digest>.json. The digest names the launch, the source, the
device and the compiler; the model version is what `roofgen profile` says about itself ("model_version"). Failures are
not kept.
"""
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import kernels
from kernels import Bad


@dataclass
class Row:
    """One point with its prediction, or with the reason why there is none."""
    point: object
    profile: dict = None
    failure: str = ""
    seconds: float = 0.0

    def predicted_us(self, model):
        return self.profile["models"][model]["time_us"]


@dataclass
class Profiler:
    """How to call roofgen. nvrtc: version -> path, for spaces whose compiler of the day is known."""
    roofgen: Path
    checkouts: kernels.Checkouts
    work: Path
    nvrtc: dict
    extra: tuple = ()
    jobs: int = 1
    timeout_s: float = 600
    model_version: str = ""
    quiet: bool = False

    def launch(self, space, point):
        return kernels.RECIPES[space.recipe](point.config, self.checkouts)

    def compiler(self, space):
        return space.compiler if space.compiler in self.nvrtc else ""

    def command(self, space, launch):
        arguments = launch.command(kernels.args_file(launch, self.checkouts.work))
        return [str(self.roofgen), "profile", *arguments, "--device", space.device, "--json", *self.extra]

    def environment(self, space):
        compiler = self.compiler(space)
        return {**os.environ, "ROOFGEN_NVRTC": self.nvrtc[compiler]} if compiler else None

    def run(self, space, point):
        """(profile, seconds); raises Bad with the first line that roofgen wrote to standard error."""
        started = time.monotonic()
        command = self.command(space, self.launch(space, point))
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=self.timeout_s,
                                  env=self.environment(space), check=False)
        except subprocess.TimeoutExpired as error:
            raise Bad(f"no result within {self.timeout_s:g} s") from error
        except OSError as error:
            raise Bad(f"--roofgen {self.roofgen}: {error.strerror}") from error
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            raise Bad(f"exit code {done.returncode}: {lines[0] if lines else 'no message'}", 1)
        return checked(done.stdout), time.monotonic() - started

    def place(self, space, point):
        name = kernels.digest(self.launch(space, point), space.device, [self.compiler(space), *self.extra])
        version = re.sub(r"[^A-Za-z0-9._-]", "_", self.model_version)
        return self.work / "profiles" / version / space.name / f"{name}.json"

    def learn_version(self, space, points):
        """Profiles points until one succeeds, to learn the version of the model; later calls know it."""
        reason = "no points"
        for point in points[:10]:
            try:
                profile, seconds = self.run(space, point)
            except Bad as error:
                reason = str(error)
                continue
            self.model_version = profile["model_version"]
            store(self.place(space, point), profile, seconds)
            return
        raise Bad(f"{space.name}: the first points all fail, the last with: {reason}", 1)

    def row(self, space, point):
        place = self.place(space, point)
        kept = stored(place)
        if kept:
            return Row(point, kept["profile"], seconds=kept["seconds"])
        try:
            profile, seconds = self.run(space, point)
        except Bad as error:
            return Row(point, failure=str(error))
        if profile["model_version"] != self.model_version:
            raise Bad(f"the model changed during the run, from {self.model_version} to {profile['model_version']}", 1)
        store(place, profile, seconds)
        return Row(point, profile, seconds=seconds)

    def rows(self, space, points):
        """One row for each point, in their order."""
        if not self.model_version:
            self.learn_version(space, points)
        rows, started, told = [], time.monotonic(), time.monotonic()
        with ThreadPoolExecutor(self.jobs) as pool:
            futures = [pool.submit(self.row, space, point) for point in points]
            try:
                for future in futures:
                    rows.append(future.result())
                    if time.monotonic() - told > 10:
                        told = time.monotonic()
                        self.tell(space, len(rows), len(points), told - started)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return rows

    def tell(self, space, done, total, seconds):
        if not self.quiet:
            left = seconds / done * (total - done) / 60
            print(f"fidelity: {space.name}: {done} of {total} points, {left:.0f} min left", file=sys.stderr)


def checked(text):
    """A profile with what the tables need."""
    try:
        profile = json.loads(text)
        for name, model in profile["models"].items():
            if not float(model["time_us"]) > 0:
                raise Bad(f"model {name} gives a time of {model['time_us']} us", 1)
        if not profile["models"] or not isinstance(profile["model_version"], str):
            raise KeyError("models")
        return profile
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Bad(f"roofgen profile printed no JSON with models and model_version: {error!r}", 1) from error


def store(place, profile, seconds):
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(f".{os.getpid()}-{place.name}")
    part.write_text(json.dumps({"seconds": round(seconds, 3), "profile": profile}))
    part.replace(place)


def stored(place):
    """None where nothing is kept, or what is kept is damaged."""
    try:
        return json.loads(place.read_text())
    except (FileNotFoundError, ValueError):
        return None
