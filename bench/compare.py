#!/usr/bin/env python3
"""Turns runs of weir_bench into one result, and compares two results.

  compare.py table --out DIR --command TEXT [--label TEXT] [--instructions FILE] [--replay FILE] RUN.json...
  compare.py diff OLD.json NEW.json [--threshold PERCENT]

`table` writes DIR/<date>-<label>.json and .md: the medians over the runs, and the table of what Weir must reach. Every
ratio is taken within one run; what is shown is the median of those ratios, with the lowest and the highest. `diff`
takes two such results (or two raw outputs of weir_bench) and exits 1 if a time grew by more than the threshold.
"""

import argparse
import datetime
import json
import pathlib
import re
import statistics
import sys

HOST_ALLOCATORS = ("mimalloc", "jemalloc", "tcmalloc", "glibc")
COUNTERS = re.compile(r"^(ns_per_pair|pairs_per_second|alloc_.*_ms|metadata_.*|reserved_bytes)$")


def fail(text):
    sys.exit(f"compare.py: {text}")


def read_json(path):
    try:
        return json.loads(pathlib.Path(path).read_text())
    except OSError as error:
        fail(f"{path}: {error.strerror}")
    except json.JSONDecodeError as error:
        fail(f"{path}: line {error.lineno}: {error.msg}")


def counters_of(run):
    """{benchmark: {counter: value}} of one output of weir_bench; failed benchmarks are left out."""
    found = {}
    for entry in run["benchmarks"]:
        if entry.get("run_type", "iteration") == "iteration" and not entry.get("error_occurred"):
            found[entry["name"]] = {k: v for k, v in entry.items() if COUNTERS.match(k)}
    return found


class Runs:
    """The same benchmarks, run several times. A question gives one value for each run, or None if a run lacks it."""

    def __init__(self, runs):
        self.runs = runs

    def values(self, benchmark, counter):
        values = [run.get(benchmark, {}).get(counter) for run in self.runs]
        return values if values and all(v is not None for v in values) else None

    def ratio(self, above, below):
        a, b = self.values(*above), self.values(*below)
        return [x / y for x, y in zip(a, b)] if a and b else None

    def names(self):
        return [n for n in self.runs[0] if all(n in run for run in self.runs)]


class Row:
    """One line of the table: values against a bar."""

    def __init__(self, workload, what, values, bar, at_most=False, unit="x"):
        self.workload, self.what, self.values = workload, what, values
        self.bar, self.at_most, self.unit = bar, at_most, unit

    @property
    def median(self):
        return statistics.median(self.values) if self.values else None

    @property
    def verdict(self):
        if not self.values:
            return "not run here"
        if self.bar is None:
            return "for comparison"
        return "reached" if (self.median <= self.bar if self.at_most else self.median >= self.bar) else "missed"

    def show(self, value):
        return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"

    def markdown(self):
        bar = f"{'at most' if self.at_most else 'at least'} {self.bar:g}{self.unit}" if self.bar is not None else ""
        measured = ""
        if self.values:
            measured = f"{self.show(self.median)}{self.unit}"
            if len(self.values) > 1:
                measured += f" ({self.show(min(self.values))} to {self.show(max(self.values))})"
        return f"| {self.workload} | {self.what} | {bar} | {measured} | {self.verdict} |"

    def as_json(self):
        return {"workload": self.workload, "what": self.what, "bar": self.bar, "at_most": self.at_most,
                "unit": self.unit, "values": self.values, "median": self.median, "verdict": self.verdict}


def scaling(runs, allocator, threads):
    return runs.ratio((f"mixed/{allocator}/threads:{threads}", "pairs_per_second"),
                      (f"mixed/{allocator}/threads:1", "pairs_per_second"))


def scaling_rows(runs, threads):
    """Weir's gain from 1 thread to `threads`, over the best host allocator's in the same run. Beside it, what the
    machine itself gives: cores that share caches or clock do less each, and only the empty harness shows how much."""
    ours = scaling(runs, "weir", threads)
    theirs = [s for s in (scaling(runs, a, threads) for a in HOST_ALLOCATORS) if s]
    values = [w / max(t[i] for t in theirs) for i, w in enumerate(ours)] if ours and theirs else None
    workload = f"W3 own streams, {threads} threads"
    return [Row(workload, "scaling from 1 thread, over the best host allocator's", values, 1),
            Row(workload, "scaling from 1 thread", ours, None),
            Row(workload, "scaling from 1 thread of the empty harness", scaling(runs, "none", threads), None)]


def table(runs, cores, gpu, instructions, shares):
    time, rate = "ns_per_pair", "pairs_per_second"
    rows = []
    for size in (512, 65536):
        rows.append(Row(f"W2 hot pair, {size} B", "instructions", instructions.get(size), 85, True, ""))
    for size in (512, 65536):
        pair = f"pair/%s/{size}"
        rows.append(Row(f"W2 hot pair, {size} B", "time over tcmalloc's",
                        runs.ratio((pair % "weir", time), (pair % "tcmalloc", time)), 2, True))
        if gpu:
            rows.append(Row(f"W2 hot pair, {size} B", "faster than PyTorch",
                            runs.ratio((pair % "pytorch", time), (pair % "weir", time)), 50))
            rows.append(Row(f"W2 raw stream, {size} B", "faster than PyTorch",
                            runs.ratio((pair % "pytorch", time), (pair % "weir_raw", time)), 6))
    if cores == 2:
        for threads, peer, bar in ((1, "tcmalloc", 1.5), (2, "mimalloc", 0.4)):
            mixed = f"mixed/%s/threads:{threads}"
            rows.append(Row(f"W3 own streams, {threads} thread{'s' if threads > 1 else ''}", f"time over {peer}'s",
                            runs.ratio((mixed % "weir", time), (mixed % peer, time)), bar, True))
    if gpu:
        mixed, shared = f"mixed/%s/threads:{cores}", f"shared_stream/%s/threads:{cores}"
        rows.append(Row(f"W3 own streams, {cores} threads", "total over PyTorch's",
                        runs.ratio((mixed % "weir", rate), (mixed % "pytorch", rate)), 500))
        rows += scaling_rows(runs, cores)
        rows.append(Row(f"W3 one stream, {cores} threads", "total over PyTorch's",
                        runs.ratio((shared % "weir", rate), (shared % "pytorch", rate)), 200))
    rows.append(Row("W4 hand-off, 64 KiB", "rate over mimalloc's",
                    runs.ratio(("handoff/weir/pairs:1", rate), ("handoff/mimalloc/pairs:1", rate)), 4))
    if gpu:
        for part, text, bar in (("1000x1mb", "W1 1000 x 1 MB", 200), ("500_mixed", "W1 500 mixed", 80)):
            counter = f"alloc_{part}_ms"
            rows.append(Row(text, "allocated, warm, faster than cudaMalloc",
                            runs.ratio(("batch/cudaMalloc", counter), ("batch/weir", counter)), bar))
    rows.append(Row("host memory for metadata", "largest share of reserved on the traces",
                    [max(shares)] if shares else None, 0.2, True, " %"))
    small = runs.values("metadata/weir/256", "metadata_share")
    rows.append(Row("host memory for metadata", "share of reserved, all blocks of 256 B",
                    [100 * v for v in small] if small else None, 0.6, True, " %"))
    return rows


def read_instructions(path):
    """{bytes: [instructions]} from what tests/instructions/run.sh printed."""
    found = {}
    if path:
        for size, count in re.findall(r"^pair of (\d+) bytes: ([\d.]+) instructions",
                                      pathlib.Path(path).read_text(), re.M):
            found[int(size)] = [float(count)]
    return found


def read_shares(path):
    """Percentage of metadata in what was reserved, for each trace of `weir replay --json`."""
    if not path:
        return []
    return [100 * t["metadata_bytes"] / t["peak_reserved"] for t in read_json(path) if t["peak_reserved"]]


def processor():
    match = re.search(r"^model name\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return match.group(1) if match else "unknown processor"


def summary(runs):
    """The medians over the runs, by benchmark and counter."""
    return {name: {counter: statistics.median(runs.values(name, counter)) for counter in runs.runs[0][name]
                   if runs.values(name, counter)} for name in runs.names()}


def make_table(options):
    raw = [read_json(path) for path in options.runs]
    runs = Runs([counters_of(run) for run in raw])
    # Only these of the context: it also holds the machine's name and paths.
    context = {key: raw[0]["context"].get(key) for key in ("num_cpus", "weir_version", "weir_device", "weir_backend")}
    gpu = context["weir_backend"] == "cuda"
    cores = context["num_cpus"]
    device = context["weir_device"] if gpu else "no GPU, simulated driver"
    machine = f"{processor()}, {cores} cores, {device}"
    rows = table(runs, cores, gpu, read_instructions(options.instructions), read_shares(options.replay))
    medians = summary(runs)
    date = datetime.date.today().isoformat()
    label = options.label or ("gpu" if gpu else {2: "two-cores"}.get(cores, f"{cores}-cores"))

    lines = [f"# weir_bench, {date}", "", f"Machine: {machine}.", f"Weir {context['weir_version']}. "
             f"{len(raw)} alternating runs; medians, with the lowest and the highest in brackets.", "",
             f"    {options.command.strip()}", "", "| workload | what | bar | measured | |", "|---|---|---|---|---|"]
    lines += [row.markdown() for row in rows]
    lines += ["", "Medians:", "", "| benchmark | ns a pair and thread | million pairs/s, all threads |", "|---|---|---|"]
    lines += [f"| {name} | {c['ns_per_pair']:,.1f} | {c['pairs_per_second'] / 1e6:,.2f} |"
              for name, c in medians.items() if "ns_per_pair" in c]
    batches = {n: c for n, c in medians.items() if n.startswith("batch/")}
    if batches:
        lines += ["", "| batch, ms | 1000 x 1 MB: allocated | and freed | 500 mixed: allocated | and freed |",
                  "|---|---|---|---|---|"]
        keys = [f"{kind}_{part}_ms" for part in ("1000x1mb", "500_mixed") for kind in ("alloc", "alloc_free")]
        lines += [f"| {name} | " + " | ".join(f"{c[key]:.3g}" for key in keys) + " |" for name, c in batches.items()]

    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    result = {"date": date, "machine": machine, "command": options.command.strip(), "context": context,
              "runs": len(raw), "table": [row.as_json() for row in rows], "medians": medians}
    (out / f"{date}-{label}.json").write_text(json.dumps(result, indent=1) + "\n")
    (out / f"{date}-{label}.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    print(f"written: {out / f'{date}-{label}.json'} and .md")


def times_of(document):
    """{benchmark: ns} of a result of `table` or of a raw run; a batch counts by its parts."""
    entries = document["medians"] if "medians" in document else counters_of(document)
    times = {}
    for name, counters in entries.items():
        for counter, value in counters.items():
            if counter == "ns_per_pair":
                times[name] = value
            elif counter.endswith("_ms"):
                times[f"{name} {counter[:-3]}"] = value * 1e6
    return times


def diff(options):
    old, new = times_of(read_json(options.old)), times_of(read_json(options.new))
    common = [name for name in old if name in new]
    if not common:
        fail(f"{options.old} and {options.new} have no benchmark in common")
    slower = 0
    width = max(len(name) for name in common)
    for name in common:
        change = 100 * (new[name] / old[name] - 1)
        mark = ""
        if change > options.threshold:
            mark, slower = "  slower", slower + 1
        print(f"{name:{width}}  {old[name]:12,.1f} ns  {new[name]:12,.1f} ns  {change:+7.1f} %{mark}")
    print(f"{len(common)} compared, {slower} slower by more than {options.threshold:g} %")
    return 1 if slower else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    t = commands.add_parser("table")
    t.add_argument("--out", required=True)
    t.add_argument("--command", required=True)
    t.add_argument("--label", default="")
    t.add_argument("--instructions")
    t.add_argument("--replay")
    t.add_argument("runs", nargs="+", metavar="RUN.json")
    t.set_defaults(run=make_table)
    d = commands.add_parser("diff")
    d.add_argument("old")
    d.add_argument("new")
    d.add_argument("--threshold", type=float, default=10, metavar="PERCENT")
    d.set_defaults(run=diff)
    options = parser.parse_args()
    sys.exit(options.run(options))


if __name__ == "__main__":
    main()
