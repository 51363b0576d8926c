# Functions for every script of this folder: folders, ports, processes, packages.
# A server script defines the functions up, down, remove (down, and deletes the data), status and env (prints its lines of
# the env file), and ends with `run_verb "$@"`. Further verbs are functions named in the variable `verbs`.
set -euo pipefail

STACK_SOURCE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/quern
STACK_DIR=$(realpath -m "${QUERN_STACK_DIR:-$cache/stack}")
TOOLS_DIR=$(realpath -m "${QUERN_TOOLS_DIR:-$cache/tools}")
mkdir -p "$STACK_DIR" "$TOOLS_DIR"
chmod 700 "$STACK_DIR"

say() { echo "$*" >&2; }
die() { say "$(basename "$0"): $*"; exit 1; }

# servers lists the server scripts: every executable file here except up and down, which act on all servers.
servers() {
  local file
  for file in "$STACK_SOURCE"/*; do
    case $(basename "$file") in up | down) continue ;; esac
    if [[ -f $file && -x $file ]]; then basename "$file"; fi
  done
}

# with_lock FILE COMMAND... runs the command while no other process holds the lock. A command that starts a server must
# close descriptor 9 for it, or the server holds the lock until it ends.
with_lock() {
  local file=$1
  shift
  (
    flock 9
    "$@"
  ) 9>"$file"
}

# run_verb VERB runs a verb. Verbs that change the server take a lock; status and env do not wait for it.
run_verb() {
  local all="up down remove status env ${verbs:-}"
  [[ $# == 1 && " $all " == *" $1 "* ]] || die "give one verb of: $all"
  case $1 in
    status | env) "$1" ;;
    *) with_lock "$STACK_DIR/$(basename "$0").lock" "$1" ;;
  esac
}

# kept NAME COMMAND... prints the first output of COMMAND, which it stores in a file. The hard link makes sure that
# concurrent callers get the same value.
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

# reserve_port PORT NAME succeeds if no other server of this stack has the port. Servers that start at the same time do not answer yet.
reserve_port() {
  local file=$STACK_DIR/.ports/$1
  mkdir -p "$STACK_DIR/.ports"
  (set -o noclobber && echo "$2" >"$file") 2>/dev/null || [[ $(<"$file") == "$2" ]]
}

# claim_port NAME chooses the port of a server that is not running: its previous port, or a free one if it has none or
# another process uses it. Ports are below 32768, where the kernel does not allocate ports for outgoing connections.
claim_port() {
  local file=$STACK_DIR/$1.port port=
  if [[ -s $file ]]; then port=$(<"$file"); fi
  while [[ -z $port ]] || port_answers "$port" || ! reserve_port "$port" "$1"; do port=$((20000 + SRANDOM % 12000)); done
  echo "$port" >"$file"
}

port_of() { cat "$STACK_DIR/$1.port"; }

# live_pid FILE MARK prints the process id in the first line of FILE, if that process runs and has MARK in its command
# line. After a crash or a restart of the machine the id may belong to another process.
live_pid() {
  local pid
  [[ -s $1 ]] && read -r pid <"$1" && [[ -r /proc/$pid/cmdline ]] || return 1
  tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF -- "$2" && echo "$pid"
}

# wait_until SECONDS COMMAND... repeats the command until it succeeds. It fails when the time is over.
wait_until() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.2
  done
}

# start_process NAME COMMAND... starts a server in its own session, so that Ctrl-C here does not reach it, and stop_process
# can end it with its children.
start_process() {
  local name=$1
  shift
  setsid "$@" >"$STACK_DIR/$name.log" 2>&1 </dev/null 9>&- &
  echo $! >"$STACK_DIR/$name.pid"
}

# answers_or_died NAME tells when to stop waiting for a server that start_process has just started. It does not use
# live_pid, because a process has no command line for a moment while it executes a program.
answers_or_died() { answers || ! kill -0 "$(<"$STACK_DIR/$1.pid")" 2>/dev/null; }

gone() { ! kill -0 -- "-$1" 2>/dev/null; }

# stop_process PID ends a process of start_process with its children: with SIGTERM, and after 30 seconds with SIGKILL.
stop_process() {
  kill -- "-$1" 2>/dev/null || return 0
  wait_until 30 gone "$1" && return 0
  kill -KILL -- "-$1" 2>/dev/null || return 0
  wait_until 10 gone "$1"
}

# apt_update reads the lists of packages, at most once an hour.
apt_update() {
  [[ -z $(find "$TOOLS_DIR/.apt-updated" -mmin -60 2>/dev/null) ]] || return 0
  apt-get -q update >&2
  touch "$TOOLS_DIR/.apt-updated"
}

# apt_install PACKAGE... installs Debian packages, one installation at a time.
apt_install() {
  [[ $(id -u) == 0 ]] || die "the packages $* are missing, and only root can install them"
  with_lock "$TOOLS_DIR/.apt.lock" apt_install_alone "$@"
}

apt_install_alone() {
  export DEBIAN_FRONTEND=noninteractive
  apt_update
  apt-get -qy -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confold \
    --no-install-recommends install "$@" >&2 </dev/null 9>&-
}
