#!/usr/bin/env bash
# Tests the quick start: from a clean clone, by `make dev` and the commands that it prints, to an answer from an uploaded file,
# as a person at two terminals would do it. The first run has empty caches (COLD=no: the caches of the machine). The second run
# uses the same clone, where everything is downloaded and built, with a new data folder, and must take at most WARM_LIMIT seconds.
set -euo pipefail

source=$(cd "$(dirname "$0")/.." && pwd)
warm_limit=${WARM_LIMIT:-60}
work=$(mktemp -d "${TMPDIR:-/tmp}/quern-quickstart.XXXXXX")
chmod 711 "$work" # PostgreSQL has a user of its own if we are root
running=

say() { echo "quickstart: $*"; }
die() {
  say "$*" >&2
  exit 1
}

# finish ends the processes that still run, by their ids, and removes all files.
finish() {
  if [[ -n $running ]]; then end; fi
  chmod -R u+w "$work" 2>/dev/null || true # Go makes the folders of modules read-only
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

end() {
  kill -INT "$(<"$XDG_STATE_HOME/quern/dev/lock")" 2>/dev/null || kill "$running" 2>/dev/null || true
  wait "$running" || true
  running=
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

printed() { grep -m1 -E "^  \S*quern( .*)? $1 " "$log" || die "\`make dev\` printed no $1"; }

# run NAME runs all steps up to the answer, and sets took to the seconds that they took.
run() {
  local began=$SECONDS answer
  export QUERN_HOME=$work/$1/home XDG_STATE_HOME=$work/$1/state
  # Other processes on this machine may use the default ports.
  export DEV_FLAGS="--port $(free_port) --issuer-port $(free_port)"
  log=$work/$1/log
  mkdir "$work/$1"
  : >"$log"

  make --no-print-directory dev >"$log" 2>&1 &
  running=$!
  until grep -q 'Press Ctrl-C to stop' "$log"; do
    kill -0 "$running" 2>/dev/null || { cat "$log" >&2 && running= && die '`make dev` ended'; }
    sleep 0.2
  done
  say "$1: ready after $((SECONDS - began)) s"

  eval "$(printed upload)" </dev/null
  answer=$(eval "$(printed ask)" </dev/null)
  echo "$answer"
  grep -qE '^Postbus +126$' <<<"$answer" || die "this is not the answer"
  took=$((SECONDS - began))
  say "$1: an answer after $took s"

  began=$SECONDS
  end
  ((SECONDS - began <= 15)) || die "it took $((SECONDS - began)) s to end"
  ! grep -lsF "$XDG_STATE_HOME" /proc/[0-9]*/cmdline || die "something still runs"
}

# Remove the settings of this machine.
for name in $(compgen -e QUERN_); do unset "$name"; done
export QUERN_TOOLS_DIR=$work/tools QUERN_STACK_DIR=$work/stack
if [[ ${COLD:-yes} == yes ]]; then export GOCACHE=$work/gocache GOMODCACHE=$work/gomod; fi

git clone -q "$source" "$work/quern"
cd "$work/quern"
run first
cold=$took
run second
say "cold $cold s, warm $took s"
((took <= warm_limit)) || die "warm takes more than $warm_limit s"
