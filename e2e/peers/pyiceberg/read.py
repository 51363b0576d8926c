"""Reads a table by the rows of its catalog, and prints the current rows and the number of rows of each snapshot as JSON."""

import json
import os
import sys

from pyiceberg.catalog import load_catalog

catalog = load_catalog(
    "quern",
    **{
        "type": "sql",
        "uri": os.environ["CATALOG_URI"],
        "init_catalog_tables": "false",
        "s3.endpoint": os.environ["S3_ENDPOINT"],
        "s3.region": os.environ["S3_REGION"],
        "s3.access-key-id": os.environ["S3_ACCESS_KEY"],
        "s3.secret-access-key": os.environ["S3_SECRET_KEY"],
    },
)
table = catalog.load_table((sys.argv[1], sys.argv[2]))
current = table.scan().to_arrow()
snapshots = [
    {
        "rows": table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().num_rows,
        "said": int(snapshot.summary["total-records"]),
    }
    for snapshot in table.snapshots()
]
print(json.dumps({"columns": current.column_names, "rows": [list(row.values()) for row in current.to_pylist()], "snapshots": snapshots}))
