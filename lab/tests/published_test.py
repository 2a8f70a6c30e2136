"""lab/fidelity/published.py: points, launches, figures, and the whole program with a made-up roofgen."""
import contextlib
import io
import json
import math
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "lab/fidelity"))

import kernels  # noqa: E402
import published  # noqa: E402
import published_kernels  # noqa: E402
import published_points  # noqa: E402
import report  # noqa: E402
from kernels import Bad  # noqa: E402
from published_points import COPY, CUDNN, FASTEST, FLASH, GEMM_A100  # noqa: E402


def temporary_folder(test):
    folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
    test.addCleanup(folder.cleanup)
    return Path(folder.name)


def make_learn_cuda(folder):
    for name in ("02b_matmul_sm80/matmul_v1.cu", "02b_matmul_sm80/matmul_v5.cu", "02b_matmul_sm80/matmul_v6.cu",
                 *(f"07_attention/attention_v{i}.cu" for i in range(1, 6))):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"// {name}\n")
    return folder


def labelled(group, label):
    return [point for point in published_points.all_points() if point.group is group and point.label == label][0]


class Points(unittest.TestCase):
    def test_times_from_rates(self):
        self.assertAlmostEqual(labelled(FLASH, "d 128 full 4096").time_us, 4 * 4 * 16 * 4096 ** 2 * 128 / 368e6)
        self.assertAlmostEqual(labelled(FLASH, "d 128 causal 4096").time_us, 2 * 4 * 16 * 4096 ** 2 * 128 / 319e6)
        self.assertAlmostEqual(labelled(GEMM_A100, "v6 4096").time_us, 2 * 4096 ** 3 / 220.77e6)
        self.assertAlmostEqual(labelled(CUDNN, "rmsnorm 8192 x 8192").time_us, 4 * 8192 ** 2 / 3771e3)
        self.assertAlmostEqual(labelled(FASTEST, "rmsnorm 8192 x 8192").time_us, 4 * 8192 ** 2 / 4176e3)
        self.assertAlmostEqual(labelled(COPY, "4 GB").time_us, 4e9 / 4300e3)

    def test_points_differ(self):
        points = published_points.all_points()
        self.assertEqual(len({(point.group.name, point.label) for point in points}), len(points))
        self.assertEqual(sum(point.group is FLASH for point in points), 36)

    def test_ladder_keeps_earlier_steps(self):
        steps = list(published_points.ladder())
        self.assertEqual(len({step.schedule for step in steps}), len(steps))
        last = dict(steps[-1].schedule)
        self.assertEqual((last["BM"], last["BN"], last["BK"], last["group"], last["store"]),
                         (128, 256, 64, 8, "staged"))


class Launches(unittest.TestCase):
    def setUp(self):
        self.folder = temporary_folder(self)
        self.maker = published_kernels.Maker(HERE / "fake_roofgen.py", self.folder / "work",
                                             make_learn_cuda(self.folder / "learn"))
        patch = mock.patch.dict(os.environ, {"FAKE_LOG": str(self.folder / "log")})
        patch.start()
        self.addCleanup(patch.stop)

    def launch(self, point, **changes):
        schedule = {**dict(point.schedules[0]), **changes}
        return self.maker.launch(point.recipe, point.group.device, tuple(schedule.items()))

    def test_flash(self):
        launch = self.launch(labelled(FLASH, "d 128 causal 4096"))
        self.assertEqual((launch.grid, launch.block, launch.smem), ((32, 16, 4), (128, 1, 1), 65536))
        text = launch.source.read_text()
        self.assertIn("BM=128,BN=64,stages=1,warps=4,q_in=shared,rescale=always", text)
        self.assertIn("int row = blockIdx.x;", text)
        self.assertEqual([each["name"] for each in launch.args][3:9],
                         ["o", "lse", "q_len", "kv_len", "group", "q_batch_stride"])
        self.assertEqual(len(launch.args), 8 + 12 + 1)
        self.assertEqual(self.launch(labelled(FLASH, "d 64 full 512")).smem, 49152)
        self.assertEqual(self.launch(labelled(FLASH, "d 256 full 512")).grid, (8, 8, 32))

    def test_our_order(self):
        self.maker.last_first = True
        self.assertIn("gridDim.x / kSection", self.launch(labelled(FLASH, "d 128 causal 4096")).source.read_text())

    def test_gemm(self):
        launches = [self.maker.launch("gemm", "h100-sxm", step.schedule) for step in published_points.ladder()]
        self.assertEqual((launches[0].grid, launches[0].block, launches[0].smem), ((4096, 1, 1), (128, 1, 1), 16384))
        self.assertEqual((launches[-1].grid, launches[-1].block, launches[-1].smem), ((512, 1, 1), (256, 1, 1), 147456))
        self.assertEqual(len(launches[0].args), 11)

    def test_norms_and_copy(self):
        launch = self.launch(labelled(CUDNN, "layernorm 1024 x 12288"))
        self.assertEqual((launch.grid, launch.block, launch.smem), ((1024, 1, 1), (128, 1, 1), 0))
        self.assertEqual([each["name"] for each in launch.args][:4], ["x", "weight", "bias", "y"])
        self.assertEqual(self.launch(labelled(CUDNN, "rmsnorm 8192 x 128"), rows_each=2).grid, (256, 1, 1))
        launch = self.launch(labelled(COPY, "4 GB"))
        self.assertGreaterEqual(launch.grid[0] * 256 * 8 * 16, 2e9)
        self.assertTrue(launch.source.is_file())

    def test_learn_cuda(self):
        launch = self.launch(labelled(GEMM_A100, "v3 4096"))
        self.assertEqual((launch.kernel, launch.grid, launch.smem),
                         ("matmul_v1_kernel<128,128,64,2,2,72,true,false>", (1024, 1, 1), 36864))
        self.assertIn("constexpr T max", launch.source.read_text())
        self.assertEqual(launch.includes, [self.folder / "learn/02b_matmul_sm80"])
        launch = self.launch(labelled(published_points.ATTENTION_5090, "v1"))
        self.assertEqual((launch.kernel, launch.grid), ("attention_v1_kernel<128,64,128,4>", (1024, 1, 1)))

    def test_errors(self):
        self.maker.learn_cuda = None
        with self.assertRaisesRegex(Bad, "--learn-cuda is missing: 02b_matmul_sm80/matmul_v1.cu"):
            self.launch(labelled(GEMM_A100, "v3 4096"))
        self.maker.learn_cuda = self.folder
        with self.assertRaisesRegex(Bad, "no 02b_matmul_sm80/matmul_v6.cu in it"):
            self.launch(labelled(GEMM_A100, "v6 4096"))
        with self.assertRaisesRegex(Bad, "0 times x, which this program replaces"):
            published_kernels.replaced_once("y", "x", "z", "file")
        with mock.patch.dict(os.environ, {"FAKE_ILLEGAL": "BM=128"}), \
                self.assertRaisesRegex(published_kernels.Illegal, "generate attention BM=128.*is illegal"):
            self.launch(labelled(FLASH, "d 128 full 4096"))
        with mock.patch.dict(os.environ, {"FAKE_FAIL": "generate gemm"}), \
                self.assertRaisesRegex(Bad, "generate gemm BM=64.*no time for this one"):
            self.maker.launch("gemm", "h100-sxm", next(iter(published_points.ladder())).schedule)


def comparison(group, measured, event, problem="one", confidence="high"):
    point = published_points.Point(group, "p", "r", ((),), measured, problem)
    return published.Compared(point, {"event": event}, (), {"confidence": confidence, "units": {}})


class Figures(unittest.TestCase):
    def test_bands(self):
        lines = published.figures_of({FLASH: [comparison(FLASH, 10, 20), comparison(FLASH, 20, 40, "two"),
                                              comparison(FLASH, 10, 22), comparison(FLASH, 10, 99, "three", "low")]})
        first, pool = lines
        self.assertEqual([first[name] for name in ("points", "pairs", "rivals")], [4, 6, 1])
        self.assertEqual((pool["points"], pool["pairs"]), (3, 3))
        self.assertAlmostEqual(pool["raw"]["worst"], math.log(2.2))
        self.assertAlmostEqual(pool["scaled"]["worst"], math.log(1.1))
        self.assertAlmostEqual(pool["ratio"]["worst"], math.log(1.1))
        self.assertAlmostEqual(pool["rival_ratio"]["q90"], math.log(1.1))
        self.assertEqual((first["name"], pool["name"]), (FLASH.name, "all tensor"))
        self.assertIn("| all tensor | event | 3 | 120.0 % | 120.0 % | - | 10.0 % |", published.summary_table(lines))

    def test_what_is_not_counted(self):
        lines = published.figures_of({FASTEST: [comparison(FASTEST, 1, 2)],
                                      CUDNN: [published.Compared(labelled(CUDNN, "rmsnorm 8192 x 128"), {})]})
        self.assertEqual([line["name"] for line in lines], [FASTEST.name])
        self.assertIn("| - | - |", published.summary_table(lines))

    def test_best_of_several_without_the_launch(self):
        point = labelled(CUDNN, "rmsnorm 8192 x 128")
        rows = {schedule: mock.Mock(profile={"models": {"event": {}, "interval": {}}, "confidence": "high"},
                                    predicted_us=lambda model, k=k: {"event": 10 - k, "interval": 20 + k}[model])
                for k, schedule in enumerate(point.schedules)}
        made = published.compared(point, rows)
        cells = json.loads((HERE.parents[1] / "roofline/devices/h200-sxm.json").read_bytes())["cells"]
        with_launch = {model: round(us + cells["launch_us"]["value"], 6) for model, us in made.times.items()}
        self.assertEqual(with_launch, {"event": 8, "interval": 20})
        self.assertEqual(made.schedule, point.schedules[2])


class Program(unittest.TestCase):
    def setUp(self):
        self.folder = temporary_folder(self)
        make_learn_cuda(self.folder / "learn")
        few = {"FLASH_RATES": {(64, True): published_points.FLASH_RATES[64, True]},
               "NORMS": published_points.NORMS[-3:]}  # a call takes 0.1 s
        for name, value in few.items():
            patch = mock.patch.object(published_points, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def call(self, *words, code=0, **environment):
        base = ["--roofgen", HERE / "fake_roofgen.py", "--learn-cuda", self.folder / "learn", "--work",
                self.folder / "w"]
        out, err = io.StringIO(), io.StringIO()
        with mock.patch.dict(os.environ, {"FAKE_LOG": str(self.folder / "log"), **environment}), \
                contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                got = kernels.guarded("published", published.main, [str(word) for word in (*base, *words)])
            except SystemExit as error:
                got = error.code
        self.assertEqual(got, code, err.getvalue())
        self.errors = err.getvalue()
        return out.getvalue() if code == 0 else err.getvalue()

    def profiles(self):
        log = self.folder / "log"
        lines = [json.loads(line)["arguments"] for line in log.read_text().splitlines()] if log.exists() else []
        log.unlink(missing_ok=True)
        return [line for line in lines if line[0] == "profile"]

    def test_all_tables_and_again_from_the_kept_results(self):
        first = self.call("--jobs", 2)
        self.assertGreater(len(self.profiles()), 40)
        for words in ("Model fake-1.", "| all tensor | event |", "| all memory | event |", "- **copy on an H200** (",
                      "Errors: event model", "(v6 8192)", "| tiles of 128 x 128 | ", "+33.4 %"):
            self.assertIn(words, first)
        self.assertEqual(self.call("--model-version", "fake-1"), first)
        self.assertEqual(self.profiles(), [])

    def test_kept_results_alone(self):
        self.call("--only", "A100", "--no-ladder", FAKE_FAIL="v5_kernel")
        self.profiles()
        text = self.call("--kept", "--model-version", "fake-1")
        self.assertEqual(self.profiles(), [])
        self.assertIn("| learn-cuda GEMM on an A100 | event | 10 |", text)
        self.assertNotIn("v5 4096", text)
        self.assertNotIn("H200", text)
        self.assertIn("--kept needs --model-version", self.call("--kept", code=2))

    def test_choice_files_and_markers(self):
        paths = {name: self.folder / f"out.{name}" for name in ("json", "csv", "md")}
        self.call("--only", "learn-cuda", "--no-ladder", "--json", paths["json"], "--csv", paths["csv"], "--write",
                  paths["md"])
        self.assertEqual(len(paths["csv"].read_text().splitlines()), 1 + 11 + 11 + 5)
        self.assertTrue(paths["md"].read_text().startswith(published.BEGIN))
        names = [line["name"] for line in json.loads(paths["json"].read_text())["figures"]]
        self.assertEqual(names[-1], "all tensor")
        paths["md"].write_text(f"{report.BEGIN}\n{report.END}\n" + paths["md"].read_text())
        self.call("--only", "copy", "--no-ladder", "--model-version", "fake-1", "--write", paths["md"])
        self.assertIn(f"{report.BEGIN}\n{report.END}\n{published.BEGIN}\n", paths["md"].read_text())

    def test_confidence_and_failures(self):
        text = self.call("--only", "copy", "--no-ladder", FAKE_CONFIDENCE="medium")
        self.assertNotIn("all memory", text)
        text = self.call("--only", "A100", "--no-ladder", "--model-version", "fake-1", FAKE_FAIL="v5_kernel")
        self.assertIn("Not modelled: v5 4096.", text)
        self.assertIn("v5 4096: exit code 1", self.errors)

    def test_schedules_that_the_space_does_not_have(self):
        text = self.call("--only", "cuDNN", "--no-ladder", FAKE_ILLEGAL="threads=128,rows_each=1")
        self.assertNotIn("row_threads=128", text)
        text = self.call("--only", "copy", "--model-version", "fake-1", FAKE_ILLEGAL="group=8")
        self.assertIn("ladder, rows of tiles in groups of 8: not in the search space", self.errors)
        self.assertIn("| 4 stages |", text)

    def test_bad_input_is_one_line(self):
        for words, message in ((("--roofgen", "/no/file"), "--roofgen /no/file: no such file"),
                               (("--learn-cuda", "/no/dir"), "--learn-cuda /no/dir: no such folder"),
                               (("--only", "x"), "no group has x in its name")):
            text = self.call(*words, code=2)
            self.assertIn(message, text)
            self.assertEqual(len(text.splitlines()), 1)


if __name__ == "__main__":
    unittest.main()
