"""A real service for the tests: its own database, the shared PostgreSQL, object store and Keycloak of `make stack`."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import urllib.parse
from pathlib import Path

import httpx2


class Service:
    """A quernd that the tests can kill and start again at the same address."""

    def __init__(self, folder: Path, name: str, **settings: str) -> None:
        self._database = f"python_{name}_{os.getpid()}"
        self._sql(f"CREATE DATABASE {self._database}")
        self._log = (folder / f"{name}.log").open("ab")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        database = urllib.parse.urlparse(os.environ["QUERN_TEST_DATABASE_URL"])._replace(path="/" + self._database).geturl()
        self._environment = os.environ | {
            "QUERN_DATABASE_URL": database,
            "QUERN_LISTEN_ADDR": f"127.0.0.1:{port}",
            "QUERN_PUBLIC_URL": self.url,
            "QUERN_ADMIN_ADDR": "127.0.0.1:0",
            "QUERN_DRAIN_DELAY": "0s",
            "QUERN_S3_BUCKET": os.environ["QUERN_TEST_S3_BUCKET"],
            "QUERN_S3_PREFIX": f"{self._database}-{time.time_ns()}",
            "QUERN_SANDBOX_DIR": str(folder / name),
            "QUERN_MAINTENANCE_INTERVAL": "1s",
            "QUERN_MAINTENANCE_QUIET_PERIOD": "0s",
            **settings,
        }
        for removed in ("QUERN_TRACING_KIND", "QUERN_TRACING_ENDPOINT"):
            self._environment.pop(removed, None)
        subprocess.run([os.environ["QUERND"], "migrate"], env=self._environment, check=True, stdout=subprocess.DEVNULL, stderr=self._log)
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen([os.environ["QUERND"], "serve"], env=self._environment, stderr=self._log)
        for _ in range(300):
            try:
                if httpx2.get(self.url + "/console.json").status_code == 200:
                    return
            except httpx2.TransportError:
                pass
            assert self._process.poll() is None, f"quernd ended; its log is {self._log.name}"
            time.sleep(0.1)
        self._process.terminate()
        raise AssertionError(f"quernd did not start; its log is {self._log.name}")

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(30)
        self._sql(f"DROP DATABASE {self._database} WITH (FORCE)")

    def token(self, person: str) -> str:
        """Return an API token of a person of the stack's realm."""
        form = {"grant_type": "password", "client_id": "quern-console", "username": person, "password": person + "-pw"}
        issuer = os.environ["QUERN_OIDC_ISSUER"]
        access = httpx2.post(issuer + "/protocol/openid-connect/token", data=form, timeout=60).raise_for_status().json()["access_token"]
        made = httpx2.post(
            self.url + "/api/v1/user/tokens",
            json={"name": "tests", "role": "owner"},
            headers={"Authorization": "Bearer " + access},
            timeout=60,  # the machine can be busy
        )
        return str(made.raise_for_status().json()["token"])

    @staticmethod
    def _sql(statement: str) -> None:
        subprocess.run(["psql", "-qX", "-v", "ON_ERROR_STOP=1", os.environ["QUERN_TEST_DATABASE_URL"], "-c", statement], check=True)
