#!/bin/sh
':' /*sh
# The command cpn, a file for two interpreters.
# Run by itself, it is this shell script, which starts the private Node that npm installed with the package, or else the one on PATH.
self=$0
# The system's own readlink: PATH may begin with a folder of another user.
[ -h "$self" ] && self=$(PATH=/usr/bin:/bin:$PATH; readlink -f "$self")
dist=${self%/*}
# What stays takes no memory in advance: a small nursery of the heap, and one arena of the C library for all threads. A daemon, which mostly
# waits, has its parser of HTTP compiled the plain way, no code of functions compiled early, forgets the code of those that rest, optimizes
# only what runs thousands of times, collects what its start left, and returns what the C library freed.
case "$1 $2" in
  'run '*)
    lean='--max-semi-space-size=1 --liftoff-only --no-sparkplug --bytecode-old-age=1 --initial-old-space-size=8'
    lean="$lean --invocation-count-for-maglev=2000"
    MALLOC_MMAP_THRESHOLD_=65536 MALLOC_TRIM_THRESHOLD_=65536
    ;;
  'control-plane serve') lean=--max-semi-space-size=4 ;;
  *) lean= ;;
esac
[ -z "$lean" ] || export MALLOC_ARENA_MAX="${MALLOC_ARENA_MAX:-1}" MALLOC_MMAP_THRESHOLD_ MALLOC_TRIM_THRESHOLD_
# True where only root, this user or the owner of cpn can change these paths: in a folder like /tmp, others may have put them there.
is_trusted() {
  users=' 0 '
  # ls sorts what it lists.
  for uid in $(list /proc/self/. "$self" | while read -r _ _ uid _; do echo "$uid"; done); do users="$users$uid "; done
  list "$@" | {
    lines=0
    while read -r mode _ uid _; do
      lines=$((lines + 1))
      case $users in *" $uid "*) ;; *) exit 1 ;; esac
      case $mode in l* | ????????-* | d????????[tT]*) ;; *) exit 1 ;; esac
    done
    [ "$lines" -eq $# ]
  }
}
list() {
  PATH=/usr/bin:/bin:$PATH ls -dn "$@" 2>/dev/null
}
# The private Node needs the C library of its architecture.
if [ -e /lib64/ld-linux-x86-64.so.2 ]; then arch=x64; elif [ -e /lib/ld-linux-aarch64.so.1 ]; then arch=arm64; else arch=none; fi
for modules in "$dist/../node_modules" "$dist/../.."; do
  node=$modules/node-linux-$arch/bin/node
  [ -x "$node" ] || continue
  is_trusted "$modules" "$modules/node-linux-$arch" "${node%/*}" "$node" && exec "$node" $lean "$dist/start.cjs" "$@"
  echo "cpn: skipped $node: another user can change it" >&2
done
exec node $lean "$self" "$@"
*/;
// Run by Node, it is this module. It keeps to what an old Node reads, so that it can say what is wrong with it.
const NEEDED = [22, 19];
const [major, minor] = process.versions.node.split('.').map(Number);

if (major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1])) await import('./start.cjs');
else await runPrivateNode();

async function runPrivateNode() {
  const { spawn } = await import('node:child_process');
  const { existsSync, lstatSync } = await import('node:fs');
  const { fileURLToPath } = await import('node:url');
  const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));
  const name = `node-${process.platform}-${process.arch}/bin/node`;
  // As is_trusted above.
  const users = [0, process.getuid && process.getuid(), lstatSync(path('./start.cjs')).uid];
  const isTrusted = (modules) =>
    process.platform === 'win32' ||
    ['', name.slice(0, -'/bin/node'.length), name.slice(0, -'/node'.length), name].every((part) => {
      const stats = lstatSync(`${modules}/${part}`);
      const isClosed = (stats.mode & 0o002) === 0 || stats.isSymbolicLink() || (stats.isDirectory() && (stats.mode & 0o1000) !== 0);
      return users.includes(stats.uid) && isClosed;
    });
  const node = [path('../node_modules'), path('../..')]
    .filter((modules) => existsSync(`${modules}/${name}`) && isTrusted(modules))
    .map((modules) => `${modules}/${name}`)[0];
  if (node === undefined) return tellNeed();
  const child = spawn(node, [path('./start.cjs'), ...process.argv.slice(2)], { stdio: 'inherit' });
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'];
  for (const signal of signals) process.on(signal, () => child.kill(signal));
  child.on('error', tellNeed);
  child.on('exit', (code, signal) => {
    for (const each of signals) process.removeAllListeners(each);
    if (signal === null) process.exitCode = code;
    else process.kill(process.pid, signal);
  });
}

function tellNeed() {
  console.error(`cpn needs Node ${NEEDED.join('.')} or newer; this is ${process.version}`);
  process.exitCode = 1;
}
