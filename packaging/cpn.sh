#!/bin/sh
# The command cpn of a system package: starts the private Node next to it. It needs no fixed path: usr/bin and usr/lib may be anywhere.
self=$0
# The system's own readlink: PATH may begin with a folder of another user.
[ -h "$self" ] && self=$(PATH=/usr/bin:/bin; readlink -f "$self")
lib=${self%/*}/../lib/cpn
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
exec "$lib/node" $lean "$lib/start.cjs" "$@"
