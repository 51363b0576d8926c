"""Takes the rows of a statement through the package quern, or with DuckDB alone, and prints how long it took and the memory."""

import json
import os
import resource
import sys
import time

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.parquet

import quern


def ours(statement, form):
    with quern.connect() as q:
        began = time.perf_counter()
        result = q.namespace("bench").sql(statement)
        print(f"the statement took {time.perf_counter() - began:.2f} s", file=sys.stderr)
        if form == "batches":
            return sum(batch.num_rows for batch in result.batches())
        return len({"pandas": result.df, "polars": result.pl, "arrow": result.arrow}[form]())


def bare(statement, form, files, threads, memory):
    path = os.path.join(os.environ["TMPDIR"], "bare.parquet")
    with duckdb.connect() as engine:
        engine.execute(f"SET threads = {threads}; SET memory_limit = '{memory}B'; SET enable_progress_bar = false")
        engine.execute(f"CREATE VIEW sales AS FROM read_parquet({files!r})")
        engine.execute(f"COPY ({statement}) TO '{path}' (FORMAT parquet)")
    if form == "pandas":
        frame = pandas.read_parquet(path, dtype_backend="pyarrow")
    elif form == "polars":
        frame = polars.read_parquet(path)
    else:
        frame = pyarrow.parquet.read_table(path)
    os.remove(path)
    return len(frame)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def main():
    want = json.load(sys.stdin)
    before, began = peak(), time.perf_counter()
    if want["bare"]:
        rows = bare(want["statement"], want["form"], want["files"], want["threads"], want["memory"])
    else:
        rows = ours(want["statement"], want["form"])
    took = time.perf_counter() - began
    print(json.dumps({"rows": rows, "seconds": took, "before": before, "peak": peak()}))


main()
