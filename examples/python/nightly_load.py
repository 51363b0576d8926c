"""Loads the files of a folder every night, and stops before wrong data can do harm.

    python nightly_load.py FOLDER NAMESPACE DATASET

QUERN_SERVER and QUERN_TOKEN name the server and an API token with the role editor. The exit status is 1 if nothing was loaded.
"""

import sys

import quern


def main(folder: str, namespace: str, dataset: str) -> int:
    with quern.connect() as q:
        target = q.namespace(namespace)

        # A dry run shows what the files contain before anything changes.
        try:
            planned = target.upload(folder, dataset, dry_run=True)
        except FileNotFoundError:
            print("no files tonight")
            return 0
        columns = {column["name"]: column["type"] for column in (planned.preview or {})["columns"]}
        try:
            known = target[dataset].columns()
        except quern.NotFound:
            known = columns  # the first night
        if changed := {name: kind for name, kind in columns.items() if known.get(name) != kind}:
            print(f"the files have other columns than the dataset: {changed}", file=sys.stderr)
            return 1

        try:
            load = target.upload(folder, dataset)
        except quern.DoubtsWaiting as waiting:  # for example, the files of yesterday again
            print(waiting, file=sys.stderr)
            return 1
        print(f"{load.rows} rows loaded, {load.rows_set_aside} set aside")
        for row in target[dataset].rows_set_aside(load)[:10]:
            print(f"  {row['file']}, row {row['row']}: {row['reason']}")
        return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
