# Sourced by every script of this folder: where things are kept, ports, processes, packages.
# A server script defines the functions up, down, remove (down, and its data is gone), status and env (its lines of the
# env file) and ends with `run_verb "$@"`; further verbs are functions named in the variable `verbs`.
set -euo pipefail

STACK_SOURCE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/quern
STACK_DIR=$(realpath -m "${QUERN_STACK_DIR:-$cache/stack}")
TOOLS_DIR=$(realpath -m "${QUERN_TOOLS_DIR:-$cache/tools}")
mkdir -p "$STACK_DIR" "$TOOLS_DIR"
chmod 700 "$STACK_DIR"

say() { echo "$*" >&2; }
die() { say "$(basename "$0"): $*"; exit 1; }

# servers lists the server scripts: every executable file here that does not act on all of them.
servers() {
  local file
  for file in "$STACK_SOURCE"/*; do
    case $(basename "$file") in up | down) continue ;; esac
    if [[ -f $file && -x $file ]]; then basename "$file"; fi
  done
}

# with_lock FILE COMMAND...: one at a time over all processes. Whoever starts a server inside must close
# descriptor 9 for it, or the server holds the lock for as long as it lives.
with_lock() {
  local file=$1
  shift
  (
    flock 9
    "$@"
  ) 9>"$file"
}

# run_verb VERB: what changes the server runs alone; what only looks does not wait.
run_verb() {
  local all="up down remove status env ${verbs:-}"
  [[ $# == 1 && " $all " == *" $1 "* ]] || die "one verb of: $all"
  case $1 in
    status | env) "$1" ;;
    *) with_lock "$STACK_DIR/$(basename "$0").lock" "$1" ;;
  esac
}

# kept NAME COMMAND...: the first output of COMMAND, for ever. The link makes it one value for all who race.
kept() {
  local file=$STACK_DIR/$1 new
  shift
  if [[ ! -s $file ]]; then
    new=$(mktemp "$STACK_DIR/.kept.XXXXXX")
    "$@" >"$new"
    ln "$new" "$file" 2>/dev/null || true
    rm -f "$new"
  fi
  cat "$file"
}

random_hex() { od -An -N"$1" -tx1 /dev/urandom | tr -d ' \n'; }

port_answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# claim_port NAME: for a server that does not run now. The port kept from last time, or a free one when there is
# none or a stranger has taken it; below 32768, where the kernel does not take ports for outgoing connections.
claim_port() {
  local file=$STACK_DIR/$1.port port=
  if [[ -s $file ]]; then port=$(<"$file"); fi
  while [[ -z $port ]] || port_answers "$port"; do port=$((20000 + RANDOM % 12000)); done
  echo "$port" >"$file"
}

port_of() { cat "$STACK_DIR/$1.port"; }

# live_pid FILE MARK: the pid in FILE's first line, if that process lives and MARK is in its command line:
# after a crash or a restart of the machine the number may belong to somebody else.
live_pid() {
  local pid
  [[ -s $1 ]] && read -r pid <"$1" && [[ -r /proc/$pid/cmdline ]] || return 1
  tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF -- "$2" && echo "$pid"
}

# wait_until SECONDS COMMAND...
wait_until() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.2
  done
}

# start_process NAME COMMAND...: in a session of its own, so that no Ctrl-C here reaches it and its children end with it.
start_process() {
  local name=$1
  shift
  setsid "$@" >"$STACK_DIR/$name.log" 2>&1 </dev/null 9>&- &
  echo $! >"$STACK_DIR/$name.pid"
}

gone() { ! kill -0 -- "-$1" 2>/dev/null; }

# stop_process PID: one that start_process started, with its children; politely, then not.
stop_process() {
  kill -- "-$1" 2>/dev/null || return 0
  wait_until 30 gone "$1" && return 0
  kill -KILL -- "-$1" 2>/dev/null || return 0
  wait_until 10 gone "$1"
}

# apt_install PACKAGE...: Debian packages, one installation at a time.
apt_install() {
  [[ $(id -u) == 0 ]] || die "needs the packages $*, and only root can install them"
  with_lock "$TOOLS_DIR/.apt.lock" apt_install_alone "$@"
}

apt_install_alone() {
  export DEBIAN_FRONTEND=noninteractive
  if [[ -z $(find "$TOOLS_DIR/.apt-updated" -mmin -60 2>/dev/null) ]]; then
    apt-get -q update >&2
    touch "$TOOLS_DIR/.apt-updated"
  fi
  apt-get -qy -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confold \
    --no-install-recommends install "$@" >&2 </dev/null 9>&-
}
