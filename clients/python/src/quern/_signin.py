"""Finds the server and the token: arguments, the environment, or the sign-in of `quern login`."""

from __future__ import annotations

import datetime
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Protocol

from ._errors import ConnectionFailed, NotSignedIn

_PROGRAM = (
    "`quern` is the command line of Quern: `make build` in a checkout writes bin/quern. The console makes tokens, too, under Account."
)
_LEEWAY = datetime.timedelta(seconds=20)


class Tokens(Protocol):
    """Provides a valid token for each request."""

    def current(self) -> str: ...


class FixedToken:
    """An API token."""

    def __init__(self, token: str) -> None:
        self._token = token.strip()

    def current(self) -> str:
        return self._token

    def __repr__(self) -> str:  # tokens must not reach logs
        return "FixedToken(…)"


class SignIn:
    """The sign-in of the command line, renewed when it is about to expire. Both programs share one file."""

    def __init__(self, server: str, path: Path) -> None:
        self._server, self._path = server, path

    def current(self) -> str:
        entry = self._entry()
        expires = datetime.datetime.fromisoformat(entry["expiresAt"])
        if expires - datetime.datetime.now(datetime.UTC) > _LEEWAY:
            return str(entry["accessToken"])
        return self._renew(entry)

    def _entry(self) -> dict[str, Any]:
        entry: dict[str, Any] = _read(self._path)["servers"].get(self._server) or {}
        if not entry:
            raise NotSignedIn(f"You are not signed in at {self._server}. Run `quern login {self._server}`.")
        return entry

    def _renew(self, entry: dict[str, Any]) -> str:
        import httpx2

        expired = NotSignedIn(f"Your sign-in has expired. Run `quern login {self._server}`.")
        if not entry.get("refreshToken"):
            raise expired
        form = {"grant_type": "refresh_token", "refresh_token": entry["refreshToken"], "client_id": entry["clientId"]}
        try:
            answer = httpx2.post(entry["tokenEndpoint"], data=form, timeout=30)
        except httpx2.HTTPError as failed:
            raise ConnectionFailed(f"The sign-in could not be renewed: {failed}") from failed
        if answer.status_code != 200:
            # Another program may have renewed it at the same time, which makes the old refresh token invalid.
            now = self._entry()
            if now["accessToken"] != entry["accessToken"]:
                return str(now["accessToken"])
            raise expired
        given = answer.json()
        until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=int(given["expires_in"]))
        fresh = entry | {"accessToken": given["access_token"], "expiresAt": until.isoformat()}
        fresh["refreshToken"] = given.get("refresh_token") or entry["refreshToken"]
        kept = _read(self._path)
        kept["servers"][self._server] = fresh
        write_private(self._path, kept)
        return str(fresh["accessToken"])


def home() -> Path:
    """Return the folder that the command line and this package share."""
    if named := os.environ.get("QUERN_HOME"):
        return Path(named)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "quern"
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA", Path.home())) / "quern"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "quern"


def address(text: str) -> str:
    """Return the address of a server in the form in which it is a key of the sign-ins."""
    text = text.removesuffix("/").removesuffix("/api/v1")
    return text if not text or "://" in text else "https://" + text


def find(server: str | None, token: str | None) -> tuple[str, Tokens]:
    """Return the server and what provides tokens for it."""
    path = home() / "credentials.json"
    server = address(server or os.environ.get("QUERN_SERVER", ""))
    token = token or os.environ.get("QUERN_TOKEN")
    kept = {"servers": {}} if token and server else _read(path)
    server = server or str(kept.get("current") or "")
    if not server:
        raise NotSignedIn(f"No server is named. Run `quern login https://your.server`, or set QUERN_SERVER and QUERN_TOKEN. {_PROGRAM}")
    if token:
        return server, FixedToken(token)
    if server not in kept["servers"]:
        raise NotSignedIn(f"You are not signed in at {server}. Run `quern login {server}`, or set QUERN_TOKEN. {_PROGRAM}")
    return server, SignIn(server, path)


def _read(path: Path) -> dict[str, Any]:
    try:
        kept: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return {"servers": {}}
    except ValueError as broken:
        raise NotSignedIn(f"The credentials cannot be read: {broken}. Sign in again with `quern login`.") from broken
    kept.setdefault("servers", {})
    return kept


def write_private(path: Path, value: Any) -> None:
    """Replace a file as a whole, so that readers never see half of it. Only its owner can read it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    try:
        with os.fdopen(handle, "w") as file:
            json.dump(value, file, indent=2)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
