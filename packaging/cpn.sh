#!/bin/sh
# The command cpn of a system package: starts the private Node next to it. It needs no fixed path: usr/bin and usr/lib may be anywhere.
self=$0
# The system's own readlink: PATH may begin with a folder of another user.
[ -h "$self" ] && self=$(PATH=/usr/bin:/bin; readlink -f "$self")
lib=${self%/*}/../lib/cpn
# What stays takes no memory in advance: a small nursery of the heap, and one arena of the C library for all threads; and a daemon has its
# parser of HTTP compiled the plain way.
case "$1 $2" in
  'run '*) lean='--max-semi-space-size=1 --liftoff-only' ;;
  'control-plane serve') lean=--max-semi-space-size=4 ;;
  *) lean= ;;
esac
[ -z "$lean" ] || export MALLOC_ARENA_MAX="${MALLOC_ARENA_MAX:-1}"
exec "$lib/node" $lean "$lib/start.cjs" "$@"
