# What the steps of a scenario are made of. Sourced by run.

# The longest wait for anything, in seconds. It only ends what hangs, also on a slow machine.
patience=240

# A line for the process that watches the machine from outside.
say() { echo "vm-test: $*" >/dev/console; }

# step NAME FUNCTION: runs a function in a shell that ends with the first command that fails, and writes down how it went. What
# comes after a step that failed makes no sense: the job ends with it.
step() {
  local name=$1 started=$EPOCHREALTIME log ok=true
  log=$out/$2.log
  # Not within a condition, which would switch "set -e" off.
  (set -euxo pipefail; PS4='+ $EPOCHREALTIME '; "$2") >"$log" 2>&1 &
  wait $! || ok=false
  write_result "$name" $ok $(((${EPOCHREALTIME/./} - ${started/./}) / 1000)) "${log##*/}"
  if [ $ok = false ]; then
    describe_host >"$out/host.log" 2>&1
    exit 1
  fi
}

# A JSON line; names contain nothing that needs an escape.
write_result() {
  printf '{"step": "%s", "ok": %s, "ms": %d, "log": "%s"}\n' "$@" >>$out/results.jsonl
  if [ -b /dev/vdc ]; then tar -C $out -cf /dev/vdc . && sync; fi
  say "$([ "$2" = true ] && echo ok || echo FAILED) $3 ms: $1"
}

# figure NAME VALUE: something that was measured, for the report.
figure() { printf '{"figure": "%s", "value": "%s"}\n' "$@" >>$out/results.jsonl; }

describe_host() {
  systemctl --failed --no-pager
  systemctl status --no-pager --full 'cpn*' far
  ip -d address
  ip route show table all
  ip -n far route
  nft list ruleset
  wg show
}

# eventually COMMAND…: repeats a command until it succeeds.
eventually() (
  set +x
  deadline=$((SECONDS + patience))
  until "$@"; do
    if [ $SECONDS -ge $deadline ]; then echo "not in time: $*" >&2; exit 1; fi
    sleep 0.1
  done
)

# A clean restart, and one as after a power cut: nothing is written that was not written yet.
restart() { exit 75; }
cut_power() {
  if [ "$kind" = vm ]; then echo b >/proc/sysrq-trigger; else systemctl --force --force reboot; fi
  sleep 60
}

# A command that has to fail; "!" would not end a step.
fails() { if "$@"; then echo "did not fail: $*" >&2; return 1; fi; }

equals() { [ "$1" = "$2" ] || { echo "expected \"$2\", found \"$1\"" >&2; return 1; }; }

# put PATH: a file from standard input, below folders that may be new.
put() { mkdir -p "${1%/*}" && cat >"$1"; }
