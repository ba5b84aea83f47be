"""weir_bench has the names it promises and runs them; compare.py reckons right. Usage:

  bench_test.py WEIR_BENCH FOLDER_OF_THE_COUNTING_PLUGIN
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPARE = ROOT / "bench" / "compare.py"
BENCH = sys.argv.pop(1)
PEERS = sys.argv.pop(1)


def run(*command):
    environment = dict(os.environ, WEIR_DRIVER="sim")
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, env=environment, check=False)


class Bench(unittest.TestCase):
    def test_names_are_as_documented(self):
        listed = run(BENCH, "--benchmark_list_tests")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        names = listed.stdout.split()
        for who in ("weir", "weir_raw", "glibc"):
            for name in (f"batch/{who}", f"pair/{who}/512", f"pair/{who}/65536", f"pair/{who}/4194304",
                         f"mixed/{who}/threads:1", f"mixed/{who}/threads:2", f"shared_stream/{who}/threads:1",
                         f"shared_stream/{who}/threads:2", f"handoff/{who}/pairs:1"):
                self.assertIn(name, names)
        self.assertEqual(len(names), len(set(names)))

    def test_every_workload_runs_on_weir(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "run.json"
            done = run(BENCH, "--benchmark_filter=/(weir|weir_raw|glibc)(/|$)", "--benchmark_min_time=0.001",
                       f"--benchmark_out={out}", "--benchmark_out_format=json")
            self.assertEqual(done.returncode, 0, done.stderr)
            entries = json.loads(out.read_text())["benchmarks"]
        self.assertGreater(len(entries), 20)
        for entry in entries:
            self.assertFalse(entry.get("error_occurred", False), entry)
            if entry["name"].startswith(("batch/", "metadata/")):
                continue
            self.assertGreater(entry["pairs_per_second"], 0, entry)
            self.assertGreater(entry["ns_per_pair"], 0, entry)

    def test_a_plugin_is_found_and_gives_everything_back(self):
        done = run(BENCH, f"--peers={PEERS}", "--benchmark_filter=/counting(/|$)", "--benchmark_min_time=0.001")
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("pair/counting/512", "mixed/counting/threads:2", "handoff/counting/pairs:1", "batch/counting"):
            self.assertIn(name, done.stdout)
        self.assertRegex(done.stdout, r"plugin: 0 live, [1-9]\d* threads")

    def test_a_folder_of_peers_that_is_missing_is_noted(self):
        done = run(BENCH, "--peers=/nonexistent", "--peers_verbose", "--benchmark_list_tests")
        self.assertEqual(done.returncode, 0)
        self.assertIn("note: cannot list /nonexistent", done.stderr)

    def test_an_unknown_option_is_named(self):
        done = run(BENCH, "--pears=x")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--pears=x", done.stderr)


class Compare(unittest.TestCase):
    """Invented runs on two cores, whose ratios are known."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def write(self, name, times):
        run_of = {"context": {"num_cpus": 2, "weir_backend": "simulated", "host_name": "secret", "weir_version": "1"},
                  "benchmarks": [{"name": n, "run_type": "iteration", "ns_per_pair": t, "pairs_per_second": 1e9 / t}
                                 for n, t in times.items()]}
        path = self.folder / name
        path.write_text(json.dumps(run_of))
        return path

    def test_ratios_are_taken_within_a_run(self):
        # The second run was four times slower throughout: the ratio is 2 all the same.
        paths = [self.write(f"{i}.json", {"pair/weir/512": 8 * f, "pair/tcmalloc/512": 4 * f})
                 for i, f in enumerate((1, 4, 1))]
        done = run(sys.executable, COMPARE, "table", "--out", self.folder / "out", "--command", "x", *paths)
        self.assertEqual(done.returncode, 0, done.stderr)
        [written] = (self.folder / "out").glob("*.json")
        text = written.read_text()
        self.assertNotIn("secret", text)
        rows = {(r["workload"], r["what"]): r for r in json.loads(text)["table"]}
        row = rows["W2 hot pair, 512 B", "time over tcmalloc's"]
        self.assertEqual((row["values"], row["verdict"]), ([2, 2, 2], "reached"))
        self.assertEqual(rows["W4 hand-off, 64 KiB", "rate over mimalloc's"]["verdict"], "not run here")

    def test_scaling_is_shown_beside_what_the_machine_gives(self):
        sys.path.insert(0, str(COMPARE.parent))
        import compare
        times = {"weir": (10, 20), "mimalloc": (100, 160), "none": (2, 4)}
        run_of = {f"mixed/{who}/threads:{n}": {"pairs_per_second": n * 1e9 / t}
                  for who, pair in times.items() for n, t in zip((1, 16), pair)}
        rows = compare.scaling_rows(compare.Runs([run_of]), 16)
        self.assertEqual([r.values for r in rows], [[0.8], [8], [8]])
        self.assertEqual([r.verdict for r in rows], ["missed", "for comparison", "for comparison"])

    def test_a_missed_bar_is_said(self):
        path = self.write("a.json", {"handoff/weir/pairs:1": 50, "handoff/mimalloc/pairs:1": 100})
        done = run(sys.executable, COMPARE, "table", "--out", self.folder / "out", "--command", "x", path)
        self.assertIn("| W4 hand-off, 64 KiB | rate over mimalloc's | at least 4x | 2x | missed |", done.stdout)

    def test_diff_finds_what_became_slower(self):
        old = self.write("old.json", {"pair/weir/512": 4, "pair/weir/65536": 4})
        new = self.write("new.json", {"pair/weir/512": 6, "pair/weir/65536": 4})
        done = run(sys.executable, COMPARE, "diff", old, new)
        self.assertEqual(done.returncode, 1)
        self.assertIn("+50.0 %  slower", done.stdout)
        self.assertEqual(run(sys.executable, COMPARE, "diff", old, new, "--threshold", "60").returncode, 0)

    def test_a_missing_file_is_named(self):
        done = run(sys.executable, COMPARE, "diff", "/nonexistent.json", "/nonexistent.json")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nonexistent.json", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
