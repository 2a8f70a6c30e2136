"""lab/fidelity: statistics, readers, recipes, tables, and the whole program with a made-up roofgen."""
import contextlib
import gzip
import io
import itertools
import json
import math
import os
import random
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "lab/fidelity"))

import fidelity  # noqa: E402
import kernels  # noqa: E402
import profiles  # noqa: E402
import report  # noqa: E402
import results  # noqa: E402
import spaces  # noqa: E402
import stats  # noqa: E402
from kernels import Bad  # noqa: E402


def sign(value):
    return (value > 0) - (value < 0)


class Statistics(unittest.TestCase):
    def test_ranks_share_ties(self):
        self.assertEqual(stats.ranks([30, 10, 20, 10]), [4, 1.5, 3, 1.5])

    def test_spearman(self):
        self.assertAlmostEqual(stats.spearman([1, 2, 3, 4], [1, 8, 27, 64]), 1)
        self.assertAlmostEqual(stats.spearman([1, 2, 3], [3, 2, 1]), -1)
        self.assertAlmostEqual(stats.spearman([1, 2, 3, 4, 5], [2, 1, 4, 3, 5]), 0.8)
        self.assertTrue(math.isnan(stats.spearman([1, 1], [1, 2])))

    def test_kendall_is_the_definition(self):
        draw = random.Random(1)
        for size in (2, 3, 10, 41):
            x, y = ([draw.randint(0, size // 2) for _ in range(size)] for _ in range(2))
            pairs = list(itertools.combinations(range(size), 2))
            score = sum(sign(x[i] - x[j]) * sign(y[i] - y[j]) for i, j in pairs)
            scale = math.sqrt(sum(x[i] != x[j] for i, j in pairs) * sum(y[i] != y[j] for i, j in pairs))
            if scale:
                self.assertAlmostEqual(stats.kendall(x, y), score / scale)
            else:
                self.assertTrue(math.isnan(stats.kendall(x, y)))

    def test_scale_and_errors(self):
        predicted, measured = [1, 2, 4], [2, 4, 4]
        self.assertEqual(stats.scale_of(predicted, measured), 2)
        self.assertAlmostEqual(stats.mape(predicted, measured), 1 / 3)
        self.assertAlmostEqual(stats.mape(predicted, measured, 2), 1 / 3)
        self.assertAlmostEqual(stats.log_errors([2], [1])[0], math.log(2))

    def test_quantile(self):
        self.assertEqual(stats.quantile([5, 1, 4, 2, 3], 0.68), 4)
        self.assertEqual(stats.quantile([1, 2], 0.5), 1)
        self.assertEqual(stats.quantile([7], 0.9), 7)
        self.assertTrue(math.isnan(stats.quantile([], 0.9)))

    def test_regret_takes_the_first_of_equal_predictions(self):
        predicted, measured = [1, 1, 2], [4, 2, 3]
        self.assertEqual(stats.regret(predicted, measured, 1), 1)
        self.assertEqual(stats.regret(predicted, measured, 2), 0)
        self.assertEqual(stats.fraction_of_optimum(predicted, measured, 1), 0.5)
        self.assertEqual(stats.regret(predicted, measured, 25), 0)

    def test_random_fraction_is_the_mean_of_all_draws(self):
        times = [3, 1, 4, 1.5, 9, 2.6]
        for count in (1, 2, 5, 6):
            draws = list(itertools.combinations(times, count))
            self.assertAlmostEqual(stats.random_fraction(times, count), sum(1 / min(d) for d in draws) / len(draws))
        self.assertEqual(stats.random_fraction(times, 25), 1)

    def test_a_search_learns_what_the_model_gets_wrong(self):
        # Kernels with b=1 take three times as long as predicted, which the first with b=0 shows; the best has a=3.
        configurations = [{"a": a, "b": b} for a in range(10) for b in (0, 1)]
        predicted = [10 + each["a"] + 2.5 * (1 - each["b"]) for each in configurations]
        measured = [p * (3 if each["b"] else 1.5 if each["a"] < 3 else 1) for p, each in zip(predicted, configurations)]
        learnt = stats.learnt_order(predicted, measured, configurations, len(predicted))
        plain = stats.model_order(predicted)
        self.assertEqual(sorted(learnt), sorted(plain))
        self.assertEqual(learnt[0], plain[0])
        self.assertEqual(stats.evaluations_to(plain, measured, 1), 10)
        self.assertLess(stats.evaluations_to(learnt, measured, 1), 8)
        self.assertEqual(stats.learnt_order(predicted, measured, configurations, 3), learnt[:3])

    def test_an_exact_model_is_not_corrected(self):
        configurations = [{"a": a} for a in range(8)]
        times = [5, 3, 8, 1, 9, 2, 7, 4]
        self.assertEqual(stats.learnt_order(times, times, configurations, 8), stats.model_order(times))

    def test_evaluations_at_random_are_the_mean_of_all_orders(self):
        times = [3, 1, 4, 1.04, 9, 2.6]
        orders = list(itertools.permutations(range(len(times))))
        for share in (0.95, 0.3, 1):
            mean = sum(stats.evaluations_to(order, times, share) for order in orders) / len(orders)
            self.assertAlmostEqual(stats.random_evaluations_to(times, share), mean)

    def test_pairs(self):
        errors = stats.pair_errors([1, 2], [1, 3], 4, seed=1)
        self.assertEqual(len(errors), 4)
        for ratio, error, wrong in errors:
            self.assertEqual((ratio, wrong), (2, False))
            self.assertAlmostEqual(error, math.log(1.5))
        self.assertTrue(all(each[2] for each in stats.pair_errors([1, 2], [3, 1], 4, seed=1)))
        self.assertEqual(stats.pair_errors([1], [1], 4, seed=1), [])
        groups = stats.by_ratio([(1.0, 0, False), (1.3, 0, False), (99.0, 0, False)])
        self.assertEqual([(low, len(group)) for low, _, group in groups if group], [(1.0, 1), (1.2, 1), (4.0, 1)])


def ktt_result(config, time, status="Ok"):
    compiled = {"RegistersCount": 40, "LocalMemorySize": 2944, "PrivateMemorySize": 0}
    counters = [{"Name": "smsp__inst_executed.sum", "Value": 1000.0}, {"Name": "dram__sectors_read.sum", "Value": 100}]
    run = {"Duration": time, "CompilationData": compiled, "ProfilingData": {"Counters": counters}}
    return {"Status": status, "ComputationResults": [run] if status == "Ok" else [],
            "Configuration": [{"Name": name, "Value": value} for name, value in config.items()]}


def ktt_file(results_of, unit="Microseconds"):
    return {"Metadata": {"TimeUnit": unit}, "Results": results_of}


KTT_CONVOLUTION = {"BLOCK_SIZE_X": 32, "BLOCK_SIZE_Y": 2, "TILE_SIZE_X": 3, "TILE_SIZE_Y": 1, "PADDING": 0,
                   "IMAGE_WIDTH": 4096, "IMAGE_HEIGHT": 4096, "HFS": 7, "READ_ONLY": 0}
HUB_CONVOLUTION = {"block_size_x": 48, "block_size_y": 2, "tile_size_x": 1, "tile_size_y": 3, "read_only": 0,
                   "use_padding": 0, "use_shmem": 1}


def temporary_folder(test):
    folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
    test.addCleanup(folder.cleanup)
    return Path(folder.name)


def write_json(path, document):
    with gzip.open(path, "wt") as out:
        json.dump(document, out)


class Readers(unittest.TestCase):
    def setUp(self):
        self.folder = temporary_folder(self)

    def read(self, document):
        write_json(self.folder / "x.json.gz", document)
        return spaces.read(self.folder / "x.json.gz")

    def test_kernel_tuner(self):
        entries = [{"a": 1, "time": 2.5, "times": [2, 4]}, {"a": 2, "time": "RuntimeFailedConfig"},
                   {"a": 3, "time": 1, "__error__": "x"}, {"a": 4, "time": 1}]
        points = self.read({"tune_params_keys": ["a"], "cache": {str(i): each for i, each in enumerate(entries)}})
        self.assertEqual([(point.config, point.time_us) for point in points], [({"a": 1}, 2500), ({"a": 4}, 1000)])
        self.assertEqual(points[0].key, "a=1")
        self.assertEqual([point.time_us for point in spaces.times_not_time(points)], [3000, 1000])

    def test_ktt(self):
        points = self.read(ktt_file([ktt_result({"A": 1}, 2.0), ktt_result({"A": 2}, 0, "ComputationFailed")],
                                    "Milliseconds"))
        self.assertEqual(len(points), 1)
        self.assertEqual(points[0].time_us, 2000)
        self.assertEqual(points[0].compiled, {"registers": 40, "shared_bytes": 2944, "local_bytes": 0})
        self.assertEqual(points[0].counters["smsp__inst_executed.sum"], 1000)

    def test_bad_files(self):
        cases = ({"x": 1}, "neither a Kernel Tuner cachefile"), ({"cache": {"1": {}}}, "not of the form expected"), \
            (ktt_file([], "Fortnights"), "'Fortnights' is unknown"), ([], "neither"), \
            ({"Metadata": {}, "Results": []}, "not of the form")
        for document, message in cases:
            with self.assertRaisesRegex(Bad, message):
                self.read(document)
        (self.folder / "y.json.gz").write_bytes(b"not gzip")
        for name, message in (("y", "not a gzipped JSON file"), ("z", "no such file")):
            with self.assertRaisesRegex(Bad, message):
                spaces.read(self.folder / f"{name}.json.gz")

    def test_twins(self):
        def point(time, **changes):
            return spaces.Point({**HUB_CONVOLUTION, **changes}, time)
        points = [point(100), point(109, read_only=1), point(50, use_shmem=0), point(50, use_shmem=0, read_only=1),
                  point(100, tile_size_x=2), point(120, tile_size_x=2, read_only=1), point(70, tile_size_x=3)]
        self.assertEqual([each.time_us for each in spaces.keep_twins(points)], [100, 109])
        self.assertEqual(len(spaces.keep_own(points)), 5)

    def test_padding_is_a_repetition(self):
        first, second = (spaces.Point({**KTT_CONVOLUTION, "PADDING": i}, 10 + 2 * i, {"registers": i}) for i in (0, 1))
        merged = spaces.merge_padding([first, second, spaces.Point({**KTT_CONVOLUTION, "HFS": 8}, 5)])
        self.assertEqual([(point.time_us, point.compiled) for point in merged], [(11, {"registers": 0}), (5, {})])

    def test_table_of_spaces(self):
        for space in spaces.SPACES:
            self.assertIn(space.recipe, kernels.RECIPES)
            self.assertIn(space.kind, spaces.GOALS)
            self.assertTrue(callable(getattr(spaces, space.keep)))
        self.assertEqual([space.name for space in spaces.named(["gemm_RTX_3090"])], ["gemm_RTX_3090"])
        self.assertNotIn(spaces.ASIDE, {space.role for space in spaces.named([])})
        with self.assertRaisesRegex(Bad, "no space 'x'; there are convolution_A100, "):
            spaces.named(["x"])


# Sources in place of the published kernels: recipes read them, nothing compiles them.
SOURCES = {"hub/kernels/convolution_milo.cu": "hub", "milo/cache_scripts/convolution/convolution.cu": "milo",
           "hub/kernels/dedisp_milo/dedispersion.cu":
               "a\n    #pragma unroll loop_unroll_factor_channel\nfor\n// #pragma unroll loop_unroll_factor_y\n",
           "hub/kernels/dedisp_milo/dedispersion.h": "#define nr_dms 2048\n",
           "hub/currently_unused/kernels/pnpoly.cu": "",
           "hub/currently_unused/kernels/gemm/common.opencl": "one",
           "hub/currently_unused/kernels/gemm/xgemm_part1.opencl": "f(__local realM* alm, __local realN* blm)",
           "hub/currently_unused/kernels/gemm/xgemm_part2.opencl": "",
           "hub/currently_unused/kernels/gemm/xgemm_part3.opencl":
               "__local realM alm[4]\nfor (int pwi=0; x)\nXgemmBody(kSizeM, cpm, alm, blm);\n",
           "ktt/Examples/KernelTunerConvolution/KernelTunerConvolution.cu": "",
           "ktt/Examples/KernelTunerPnpoly/KernelTunerPnpoly.cu": ""}


def make_sources(folder):
    for name, text in SOURCES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def total(argument):
    return {"f32": 4, "i32": 4, "u8": 1}[argument["type"]] * argument.get("size", 1)


class Recipes(unittest.TestCase):
    def setUp(self):
        self.folder = temporary_folder(self)
        make_sources(self.folder)
        self.checkouts = kernels.Checkouts(self.folder / "hub", self.folder / "ktt", self.folder / "work")

    def launch(self, recipe, config):
        launch = kernels.RECIPES[recipe](config, self.checkouts)
        self.assertLess(sum(total(argument) for argument in launch.args), 4 << 30)
        json.dumps(launch.args)
        return launch

    def test_convolution(self):
        launch = self.launch("ktt-convolution", KTT_CONVOLUTION)
        self.assertEqual((launch.grid, launch.block), ((43, 2048, 1), (32, 2, 1)))
        self.assertEqual(launch.defines, KTT_CONVOLUTION)
        self.assertEqual([argument["size"] for argument in launch.args], [4096 * 4096, 4110 * 4110, 225])
        launch = self.launch("hub-convolution", HUB_CONVOLUTION)
        self.assertEqual((launch.grid, launch.block), ((86, 683, 1), (48, 2, 1)))
        self.assertEqual((launch.defines["grid_size_x"], launch.defines["read_only"]), (86, 0))
        self.assertEqual(launch.args[-1]["symbol"], "d_filter")
        self.assertEqual(launch.source.read_text(), "hub")
        self.checkouts.milo = self.folder / "milo"
        self.assertEqual(self.launch("hub-convolution", HUB_CONVOLUTION).source.read_text(), "milo")

    def test_pnpoly(self):
        launch = self.launch("ktt-pnpoly", {"BLOCK_SIZE_X": 96, "TILE_SIZE": 20, "VERTICES": 600})
        self.assertEqual((launch.grid, launch.block), ((10417, 1, 1), (96, 1, 1)))
        self.assertNotIn("symbol", str(launch.args))
        launch = self.launch("hub-pnpoly", {"block_size_x": 96, "tile_size": 20})
        vertices = launch.args[-1]["values"]
        self.assertEqual(len(vertices), 1200)
        self.assertTrue(all(abs(x * x + y * y - 1) < 1e-6 for x, y in zip(vertices[::2], vertices[1::2])))

    def test_dedispersion(self):
        config = {"block_size_x": 32, "block_size_y": 8, "block_size_z": 1, "tile_size_x": 4, "tile_size_y": 8,
                  "tile_stride_x": 0, "tile_stride_y": 1, "loop_unroll_factor_channel": 0}
        launch = self.launch("dedispersion", config)
        self.assertEqual((launch.grid, launch.block), ((782, 256, 1), (32, 8, 1)))
        self.assertNotIn("loop_unroll_factor_channel", launch.source.read_text())
        self.assertIn("loop_unroll_factor_y", launch.source.read_text())
        self.assertNotIn("loop_unroll_factor_channel", launch.defines)
        self.assertEqual(launch.includes, [self.folder / "hub/kernels/dedisp_milo"])
        with self.assertRaisesRegex(Bad, "is not 0"):
            self.launch("dedispersion", {**config, "loop_unroll_factor_channel": 2})

    def test_shifts(self):
        shifts = kernels.dedispersion_shifts()
        self.assertEqual((len(shifts), shifts[-1]), (1536, 0))
        self.assertAlmostEqual(shifts[0], 4148.808 * (1425 ** -2 - 1724.8046875 ** -2) / 0.00004096, delta=0.01)
        self.assertLess(2048 * 0.02 * shifts[0], kernels.MAX_SHIFT)
        self.assertEqual(shifts, sorted(shifts, reverse=True))

    def test_gemm(self):
        config = {"MWG": 128, "NWG": 64, "MDIMC": 16, "NDIMC": 8}
        launch = self.launch("gemm", config)
        self.assertEqual((launch.grid, launch.block), ((32, 64, 1), (16, 8, 1)))
        self.assertIn("f(realM* alm, realN* blm)", launch.source.read_text())
        self.assertIn("__local realM alm[4]", launch.source.read_text())
        self.assertIn("\n#if TILE_UNROLLS\n#pragma unroll\n#endif\nfor (int pwi=0; x)", launch.source.read_text())
        self.assertIn("XgemmBody(kSizeM, cpm, element_aligned(alm, kSizeK), element_aligned(blm, kSizeK));",
                      launch.source.read_text())
        self.assertEqual([argument.get("value") for argument in launch.args[:5]], [4096, 4096, 4096, 1, 1])

    def test_missing_checkout(self):
        self.checkouts.ktt = None
        with self.assertRaisesRegex(Bad, "--ktt is missing: Examples/KernelTunerPnpoly"):
            self.launch("ktt-pnpoly", {"BLOCK_SIZE_X": 96, "TILE_SIZE": 20})
        self.checkouts.hub = self.folder
        with self.assertRaisesRegex(Bad, "no kernels/convolution_milo.cu in it"):
            self.launch("hub-convolution", HUB_CONVOLUTION)

    def test_digest_is_of_contents(self):
        launch = self.launch("ktt-convolution", KTT_CONVOLUTION)
        first = kernels.digest(launch, "d", [])
        self.assertNotEqual(first, kernels.digest(launch, "e", []))
        self.assertNotEqual(first, kernels.digest(launch, "d", ["12.2"]))
        launch.source.write_text("other")
        self.assertNotEqual(first, kernels.digest(launch, "d", []))


def row(time, event, counters=None, compiled=None, **profile):
    point = spaces.Point({"a": time, "b": 1}, time, compiled or {}, counters or {})
    return profiles.Row(point, {"models": {"roofline": {"time_us": 1}, "event": {"time_us": event}}, **profile})


class Figures(unittest.TestCase):
    def test_counters(self):
        counters = {"smsp__inst_executed.sum": 1000, "smsp__thread_inst_executed_per_inst_executed.ratio": 31.0,
                    "dram__sectors_read.sum": 100, "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum": 0}
        counts = {"warp_instructions": 1010, "thread_instructions": 31000, "dram_read_bytes": 3200,
                  "local_load_sectors": 0, "l2_read_sectors": 7}
        figures = results.counter_figures([row(1, 1, counters, counts=counts), row(1, 1)])
        self.assertEqual({name: (round(f["median"], 9), f["points"]) for name, f in figures.items()},
                         {"smsp__inst_executed.sum": (0.01, 1), "thread instructions": (0, 1),
                          "dram__sectors_read.sum": (0, 1), "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum": (0, 1)})

    def test_compiled(self):
        rows = [row(1, 1, compiled={"registers": 40, "shared_bytes": 8}, registers=n, static_smem_bytes=8)
                for n in (40, 41)]
        self.assertEqual(results.compiled_figures(rows), {"registers": {"points": 2, "equal": 1},
                                                          "shared_bytes": {"points": 2, "equal": 2}})

    def test_space(self):
        space = spaces.named(["gemm_RTX_3090"])[0]
        rows = [row(10, 5), row(20, 10), row(30, 14), profiles.Row(spaces.Point({"a": 1}, 7), failure="x")]
        figures = results.space_figures(space, rows, [each.point for each in rows], 9, "")
        names = ("recorded", "valid", "drawn", "failed", "best_us", "drawn_best_us")
        self.assertEqual([figures[name] for name in names], [9, 4, 4, 1, 7, 10])
        self.assertEqual(list(figures["models"]), ["event", "roofline"])
        self.assertEqual(figures["models"]["event"]["scale"], 2)
        self.assertTrue(figures["goals"]["event"]["rho"]["met"])
        self.assertFalse(figures["goals"]["roofline"]["mape"]["met"])

    def test_nothing_predicted(self):
        space = spaces.named(["gemm_RTX_3090"])[0]
        rows = [profiles.Row(spaces.Point({"a": 1}, 7), failure="x")]
        figures = results.space_figures(space, rows, [rows[0].point], 1, "")
        figures["differences"] = {}
        options = mock.Mock(points=5, seed=1, pairs=2)
        bands = results.bands([(space, rows)], [(space, {})])
        self.assertIn("gemm_RTX_3090", report.markdown([figures], [], bands, "v", options))

    def test_pools(self):
        two = [spaces.named([name])[0] for name in ("ktt_convolution_3090", "convolution_A4000")]
        pools = results.pooled_differences([(space, {"event": [(1.1, 0.1, False)]}) for space in two])
        self.assertEqual([(pool["role"], pool["groups"][-1]["pairs"]) for pool in pools], [("report", 2)])

    def test_neighbours_differ_in_one_parameter(self):
        def at(tile, unroll, time_us, event):
            return profiles.Row(spaces.Point({"tile": tile, "unroll": unroll}, time_us),
                                {"models": {"event": {"time_us": event}}})
        rows = [at(1, 1, 10, 5), at(2, 1, 20, 5), at(1, 2, 10, 10), at(4, 4, 10, 1)]
        errors = results.neighbour_errors(rows)["event"]  # the first with the second, and with the third
        self.assertEqual([(ratio, wrong) for ratio, _, wrong in errors], [(1, True), (2, False)])
        self.assertTrue(all(abs(error - math.log(2)) < 1e-12 for _, error, _ in errors))
        self.assertEqual(results.neighbour_errors(rows[:1]), {})

    def test_bands(self):
        fit, other, gemm = (spaces.named([name])[0] for name in ("ktt_convolution_2080Ti", "convolution_A4000",
                                                                 "gemm_RTX_3090"))
        exact, off = [row(10, 5), row(20, 10), row(40, 20)], [row(10, 10), row(20, 20), row(30, 60)]
        def ratio(factor):
            return {model: [(1.1, math.log(factor), False), (2.0, 9, False)] for model in ("event", "roofline")}
        bands = results.bands([(fit, exact), (other, off), (gemm, off)],
                              [(fit, ratio(1.5)), (other, ratio(3)), (gemm, ratio(3))])
        found = {(each["kind"], each["role"], each["model"]): each for each in bands}
        self.assertEqual(len(found), 10)
        pool = found["compute and shared memory", "fit", "event"]
        self.assertEqual((pool["spaces"], pool["points"], pool["pairs"]), (1, 3, 1))
        self.assertAlmostEqual(pool["single_90"], 1)
        self.assertAlmostEqual(pool["pair_90"], 1.5)
        pool = found["compute and shared memory", "all", "event"]
        self.assertEqual((pool["spaces"], pool["points"], pool["pairs"]), (2, 6, 2))
        self.assertAlmostEqual(pool["single_90"], 2, msg="each space has its own scale")
        self.assertAlmostEqual(pool["pair_90"], 3)
        lines = report.bands_table(bands).splitlines()[2:]
        self.assertEqual(lines, ["| compute and shared memory | event | 2.00 | 1.00 | 2.00 | 3.00 | 1.50 | 3.00 |",
                                 "| gemm | event | 2.00 | 2.00 | - | 3.00 | 3.00 | - |"])


class Reports(unittest.TestCase):
    def test_write_between_markers(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.md"
            report.write(path, "one\n")
            path.write_text(f"before\n{path.read_text()}after\n")
            report.write(path, "two\n")
            self.assertEqual(path.read_text(), f"before\n{report.BEGIN}\ntwo\n{report.END}\nafter\n")
            path.write_text("nothing\n")
            with self.assertRaisesRegex(Bad, "needs the lines"):
                report.write(path, "x\n")

    def test_explain(self):
        text = report.explain([row(10, 5), row(20, 10), row(30, 30)], 1, "event", lambda each: "CALL")
        self.assertIn(" 2.000  measured       30.0 us", text)
        self.assertIn("CALL", text)
        self.assertIn("a  10: 1.000 (1)  20: 1.000 (1)  30: 2.000 (1)", text)
        self.assertNotIn(" b ", text)

    def test_cells(self):
        self.assertEqual((report.band(math.log(1.1)), report.band(None), report.number(math.nan)), ("10.0 %", "-", "-"))


class Program(unittest.TestCase):
    """fidelity.py as called, on two small spaces."""

    def setUp(self):
        self.folder = temporary_folder(self)
        make_sources(self.folder)
        self.points = [ktt_result({**KTT_CONVOLUTION, "TILE_SIZE_X": x, "TILE_SIZE_Y": y}, 100 + 10 * x + y)
                       for x in range(1, 5) for y in range(1, 4)]
        for name in ("ktt_convolution_2080Ti", "ktt_convolution_3090"):
            write_json(self.folder / f"{name}.json.gz", ktt_file(self.points))
        self.environment = {"FAKE_LOG": str(self.folder / "log")}

    def call(self, *words, code=0, **environment):
        """Runs the program; returns what it printed to standard output, or to standard error if it failed."""
        base = ["--roofgen", HERE / "fake_roofgen.py", "--spaces", self.folder, "--hub", self.folder / "hub", "--ktt",
                self.folder / "ktt", "--work", self.folder / "work", "--only", "ktt_convolution_3090", "--points", "8"]
        out, err = io.StringIO(), io.StringIO()
        with mock.patch.dict(os.environ, {**self.environment, **environment}), contextlib.redirect_stdout(out), \
                contextlib.redirect_stderr(err):
            try:
                got = kernels.guarded("fidelity", fidelity.main, [str(word) for word in (*base, *words)])
            except SystemExit as error:
                got = error.code
        self.assertEqual(got, code, err.getvalue())
        self.errors = err.getvalue()
        return out.getvalue() if code == 0 else err.getvalue()

    def calls(self):
        log = self.folder / "log"
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        log.unlink(missing_ok=True)
        return lines

    def test_tables_are_the_same_again_from_the_kept_results(self):
        first = self.call("--jobs", 2)
        self.assertEqual(len(self.calls()), 8)
        self.assertIn("| ktt_convolution_3090 | report | rtx-3090 | default | 8 | 12 | 0 | 0.111 |", first)
        self.assertIn("- ktt_convolution_3090: registers equal at 8 of 8 points", first)
        self.assertIn("| `smsp__inst_executed.sum` | 8 | 1.00 % |", first)
        self.assertEqual(self.call(), first)
        self.assertEqual(len(self.calls()), 1, "one call asks for the version of the model")
        self.assertEqual(self.call("--model-version", "fake-1"), first)
        self.assertEqual(len(self.calls()), 0)

    def test_a_new_model_profiles_again(self):
        self.call()
        self.calls()
        self.assertIn("Model fake-2.", self.call(FAKE_VERSION="fake-2"))
        self.assertEqual(len(self.calls()), 8)
        self.assertIn("the model changed during the run, from fake-1 to fake-3",
                      self.call("--model-version", "fake-1", "--points", "all", FAKE_VERSION="fake-3", code=1))

    def test_killed_run_goes_on(self):
        self.call()
        self.calls()
        for place in sorted((self.folder / "work/profiles/fake-1/ktt_convolution_3090").iterdir())[:3]:
            place.write_text("{")
        self.call("--model-version", "fake-1")
        self.assertEqual(len(self.calls()), 3)

    def test_compiler_of_the_day(self):
        self.call("--nvrtc", f"12.2={self.folder}", "--nvrtc", f"11.0={HERE}")
        self.assertEqual({each["nvrtc"] for each in self.calls()}, {str(self.folder)})
        self.assertIn("not VERSION=PATH", self.call("--nvrtc", "12.2=/no/such/place", code=2))

    def test_failures_are_counted_and_tried_again(self):
        text = self.call("--points", "all", FAKE_FAIL="TILE_SIZE_Y=2")
        self.assertIn("| 12 | 12 | 4 |", text)
        self.assertIn("4 failed: exit code 1: fake: no time for this one (first: ", self.errors)
        self.calls()
        self.assertIn("| 12 | 12 | 0 |", self.call("--points", "all", "--model-version", "fake-1"))
        self.assertEqual(len(self.calls()), 4)
        self.assertIn("the first points all fail", self.call("--work", self.folder / "other", FAKE_FAIL="Conv", code=1))

    def test_the_draw_ignores_times(self):
        def drawn():
            self.call("--seed", 3, "--work", self.folder / str(len(list(self.folder.iterdir()))))
            return sorted(" ".join(each["arguments"][:8]) for each in self.calls())
        first = drawn()
        for index, each in enumerate(self.points):
            each["ComputationResults"][0]["Duration"] = 1000.0 - index
        write_json(self.folder / "ktt_convolution_3090.json.gz", ktt_file(self.points[::-1]))
        self.assertEqual([line.split("--args")[0] for line in drawn()], [line.split("--args")[0] for line in first])

    def test_a_larger_draw_contains_the_smaller(self):
        self.call()
        self.calls()
        self.call("--points", "11", "--model-version", "fake-1")
        self.assertEqual(len(self.calls()), 3)
        points = list(range(1000))
        self.assertEqual(fidelity.drawn(points, 500, 1)[:60], fidelity.drawn(points, 60, 1))
        self.assertEqual(len(set(fidelity.drawn(points, 500, 1))), 500)
        self.assertEqual(fidelity.drawn(points, None, 1), points)

    def test_files(self):
        paths = {name: self.folder / f"out.{name}" for name in ("json", "csv", "md")}
        self.call("--json", paths["json"], "--csv", paths["csv"], "--write", paths["md"], "--only",
                  "ktt_convolution_2080Ti")
        figures = json.loads(paths["json"].read_text())
        self.assertEqual([each["space"] for each in figures["spaces"]], ["ktt_convolution_2080Ti",
                                                                        "ktt_convolution_3090"])
        self.assertEqual({pool["role"] for pool in figures["pooled_differences"]}, {"fit", "report"})
        self.assertEqual({pool["role"] for pool in figures["bands"]}, {"all", "fit", "report"})
        lines = paths["csv"].read_text().splitlines()
        self.assertEqual((len(lines), lines[0].split(",")[4:6]), (17, ["event_us", "roofline_us"]))
        self.assertIn("### Bands", paths["md"].read_text())

    def test_explain_and_commands(self):
        text = self.call("--explain", "ktt_convolution_3090", 2)
        self.assertEqual(text.count("  measured "), 2)
        self.assertIn("TILE_SIZE_X  1: ", text)
        self.assertIn("there are event, roofline", self.call("--explain", "ktt_convolution_3090", 2, "--model", "x",
                                                             code=2))
        self.calls()
        text = self.call("--commands", "ktt_convolution_3090", 3)
        self.assertEqual((text.count("# measured"), self.calls()), (3, []))

    def test_times(self):
        path = self.folder / "times.json"
        self.call("--times", path)
        self.assertEqual(self.calls(), [])
        document = json.loads(path.read_text())
        self.assertEqual((document["schema"], len(document["kernels"])), ("roofgen.times.1", 8))
        first = document["kernels"][0]
        self.assertEqual((first["family"], first["kernel"]), ("ktt_convolution_3090", "Convolution"))
        self.assertTrue((self.folder / first["file"]).is_file() and (self.folder / first["args"]).is_file())
        self.assertIn(f"TILE_SIZE_X={(first['time_us'] - 100) // 10:.0f}", first["defines"])
        self.call("--times", path, "--family", "TILE_SIZE_X", "--points", "all")
        families = {item["family"] for item in json.loads(path.read_text())["kernels"]}
        self.assertEqual(families, {f"ktt_convolution_3090 TILE_SIZE_X={x}" for x in range(1, 5)})
        self.assertIn("--family X: ktt_convolution_3090 has BLOCK_SIZE_X, ",
                      self.call("--times", path, "--family", "X", code=2))
        self.assertIn("--times is for spaces of one device; these are of rtx-2080-ti, rtx-3090",
                      self.call("--times", path, "--only", "ktt_convolution_2080Ti", code=2))

    def test_recordings(self):
        folder = self.folder / "recordings"
        self.call("--recordings", folder)
        path = folder / "ktt_convolution_3090.t4.json.gz"
        first = path.read_bytes()
        document = json.loads(gzip.decompress(first))
        metadata = document["metadata"]
        self.assertEqual((metadata["device"], metadata["model_version"]), ("rtx-3090", "fake-1"))
        self.assertEqual(len(document["results"]), 8)
        for result in document["results"]:
            time, predicted = result["measurements"]
            x, y = result["configuration"]["TILE_SIZE_X"], result["configuration"]["TILE_SIZE_Y"]
            self.assertEqual((time["name"], time["value"]), ("time", 100 + 10 * x + y))
            self.assertEqual((predicted["name"], predicted["value"] > 11), ("predicted", True))
        self.call("--recordings", folder)
        self.assertEqual(path.read_bytes(), first)
        self.call("--recordings", folder, "--model", "roofline")
        roofline = json.loads(gzip.decompress(path.read_bytes()))
        for ours, theirs in zip(document["results"], roofline["results"]):
            self.assertEqual(ours["measurements"][1]["value"], 2 * theirs["measurements"][1]["value"])
        self.assertIn("there are event, roofline", self.call("--recordings", folder, "--model", "x", code=2))

    def test_recordings_of_failures(self):
        folder = self.folder / "recordings"
        self.assertIn("no point has a prediction", self.call(
            "--recordings", folder, "--model-version", "fake-1", FAKE_FAIL="profile", code=1).splitlines()[-1])
        self.call("--recordings", folder, "--model-version", "fake-1", FAKE_FAIL="TILE_SIZE_X=1")
        document = json.loads(gzip.decompress((folder / "ktt_convolution_3090.t4.json.gz").read_bytes()))
        predicted = {True: set(), False: set()}
        for result in document["results"]:
            predicted[result["configuration"]["TILE_SIZE_X"] == 1].add(result["measurements"][1]["value"])
        self.assertEqual(predicted[True], {max(predicted[False])})

    def test_bad_input_is_one_line(self):
        cases = (("--roofgen", "/no/file"), "--roofgen /no/file: no such file"), \
            (("--hub", "/no/dir"), "--hub /no/dir: no such folder"), (("--only", "x"), "no space 'x'"), \
            (("--role", "fit"), "no space is left"), (("--explain", "gemm_RTX_3090", "x"), "'x' is not a number"), \
            (("--only", "gemm_RTX_3090"), "gemm_RTX_3090.json.gz: no such file"), \
            (("--roofgen", self.folder / "log2"), "Exec format|Permission denied")
        (self.folder / "log2").write_text("")
        for words, message in cases:
            text = self.call(*words, code=1 if "log2" in str(words) else 2)
            self.assertRegex(text, message)
            self.assertEqual(len(text.splitlines()), 1)

    def test_profiles_without_what_is_needed(self):
        for text, message in (("x", "no JSON"), ('{"models": {}, "model_version": "1"}', "no JSON"),
                              ('{"models": {"event": {"time_us": 0}}, "model_version": "1"}', "a time of 0 us"),
                              ('{"models": {"event": {"time_us": 1}}}', "no JSON")):
            with self.assertRaisesRegex(Bad, message):
                profiles.checked(text)


if __name__ == "__main__":
    unittest.main()
