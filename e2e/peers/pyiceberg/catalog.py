"""A catalog of Iceberg tables that answers the read requests of the REST protocol, over PyIceberg's SQL catalog, and writes tables as it is told.

Requests of the protocol need the token of the environment, or one that the client of the environment gets. Commands are posted to /do/COMMAND and need nothing: the server listens on loopback alone.
"""

import datetime
import decimal
import json
import os
import secrets
import sys
import tempfile
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pyarrow
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

TYPES = {
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "decimal": DecimalType(12, 3),
    "wide decimal": DecimalType(20, 3),
    "boolean": BooleanType(),
    "date": DateType(),
    "time": TimeType(),
    "timestamp": TimestampType(),
    "timestamptz": TimestamptzType(),
    "string": StringType(),
    "uuid": UUIDType(),
    "binary": BinaryType(),
    "list": ListType(100, StringType(), element_required=False),
}

catalog = SqlCatalog(
    "tables",
    **{
        "uri": f"sqlite:///{tempfile.mkdtemp()}/catalog.db",
        "warehouse": os.environ["WAREHOUSE"],
        "s3.endpoint": os.environ["S3_ENDPOINT"],
        "s3.region": os.environ["S3_REGION"],
        "s3.access-key-id": os.environ["S3_ACCESS_KEY"],
        "s3.secret-access-key": os.environ["S3_SECRET_KEY"],
    },
)
lock = threading.Lock()
tokens = {os.environ["TOKEN"]}


def value_of(kind, value):
    """Returns a value of JSON as one of the type."""
    match str(kind):
        case _ if value is None:
            return None
        case "date":
            return datetime.date.fromisoformat(value)
        case "time":
            return datetime.time.fromisoformat(value)
        case "timestamp" | "timestamptz":
            return datetime.datetime.fromisoformat(value)
        case text if text.startswith("decimal"):
            return decimal.Decimal(value)
        case "uuid":
            return bytes.fromhex(value.replace("-", ""))
        case _:
            return value


def arrow_of(table, rows):
    fields = {field.name: field.field_type for field in table.schema().fields}
    rows = [{name: value_of(fields[name], row.get(name)) for name in fields} for row in rows]
    return pyarrow.Table.from_pylist(rows, schema=schema_to_pyarrow(table.schema(), include_field_ids=False))


def create(table, columns, version=2, partition=None, properties=None):
    catalog.create_namespace_if_not_exists(table.rsplit(".", 1)[0])
    schema = Schema(*[NestedField(n + 1, name, TYPES[kind], required=False) for n, (name, kind) in enumerate(columns)])
    fields = [PartitionField(schema.find_field(name).field_id, 1000 + n, IdentityTransform(), name) for n, name in enumerate(partition or [])]
    catalog.create_table(table, schema, partition_spec=PartitionSpec(*fields), properties={"format-version": str(version), **(properties or {})})


def append(table, rows):
    found = catalog.load_table(table)
    found.append(arrow_of(found, rows))


def delete(table, where):
    catalog.load_table(table).delete(where)


def overwrite(table, rows, where):
    found = catalog.load_table(table)
    found.overwrite(arrow_of(found, rows), where)


def compact(table):
    """Writes all rows into new files."""
    found = catalog.load_table(table)
    found.overwrite(found.scan().to_arrow())


def evolve(table, add=None, rename=None, drop=None, promote=None):
    with catalog.load_table(table).update_schema() as update:
        for name, kind in (add or {}).items():
            update.add_column(name, TYPES[kind])
        for name, other in (rename or {}).items():
            update.rename_column(name, other)
        for name in drop or []:
            update.delete_column(name)
        for name, kind in (promote or {}).items():
            update.update_column(name, TYPES[kind])


def prop(table, name, value):
    with catalog.load_table(table).transaction() as transaction:
        transaction.set_properties({name: value})


def drop(table):
    catalog.drop_table(table)


def read(table):
    """Returns what PyIceberg reads of the current snapshot: its id, its files, and its rows as text."""
    found = catalog.load_table(table)
    current = found.current_snapshot()
    files = [task.file.file_path for task in found.scan().plan_files()]
    rows = [{name: None if value is None else str(value) for name, value in row.items()} for row in found.scan().to_arrow().to_pylist()]
    return {"snapshot": str(current.snapshot_id) if current else "0", "files": sorted(set(files)), "rows": rows, "columns": found.schema().column_names}


COMMANDS = {command.__name__: command for command in (create, append, delete, overwrite, compact, evolve, prop, drop, read)}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def refuse(self, status, kind):
        self.answer(status, {"error": {"message": kind, "type": kind, "code": status}})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/v1/oauth/tokens":
            form = dict(urllib.parse.parse_qsl(body.decode()))
            if (form.get("client_id"), form.get("client_secret"), form.get("grant_type")) != (os.environ["CLIENT_ID"], os.environ["CLIENT_SECRET"], "client_credentials"):
                return self.answer(400, {"error": "invalid_client"})
            token = secrets.token_urlsafe()
            tokens.add(token)
            return self.answer(200, {"access_token": token, "token_type": "bearer", "expires_in": 3600})
        if not self.path.startswith("/do/"):
            return self.refuse(403, "ForbiddenException")
        try:
            with lock:
                done = COMMANDS[self.path.removeprefix("/do/")](**json.loads(body))
        except Exception as problem:  # the test shows it
            return self.answer(500, {"error": repr(problem)})
        return self.answer(200, done)

    def do_GET(self):
        path, _, query = self.path.partition("?")
        parts = [urllib.parse.unquote(part) for part in path.strip("/").split("/")]
        if self.headers.get("Authorization", "").removeprefix("Bearer ") not in tokens:
            return self.refuse(401, "NotAuthorizedException")
        if parts == ["v1", "config"]:
            if urllib.parse.parse_qs(query).get("warehouse", ["main"]) != ["main"]:
                return self.refuse(404, "NoSuchWarehouseException")
            return self.answer(200, {"defaults": {}, "overrides": {"prefix": "warehouses/main"}})
        if parts[:3] != ["v1", "warehouses", "main"]:
            return self.refuse(404, "NotFoundException")
        if parts[3:] == ["namespaces"]:
            with lock:
                return self.answer(200, {"namespaces": [list(name) for name in catalog.list_namespaces()]})
        if len(parts) == 7 and parts[3] == "namespaces" and parts[5] == "tables":
            try:
                with lock:
                    table = catalog.load_table((*parts[4].split("\x1f"), parts[6]))
            except NoSuchTableError:
                return self.refuse(404, "NoSuchTableException")
            metadata = json.loads(table.metadata.model_dump_json(by_alias=True, exclude_none=True))
            return self.answer(200, {"metadata-location": table.metadata_location, "metadata": metadata, "config": {}})
        return self.refuse(404, "NotFoundException")


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()  # ends with the test
server.serve_forever()
