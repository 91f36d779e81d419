#!/bin/sh
# The command cpn of a system package: starts the private Node beside it. It needs no fixed place: usr/bin and usr/lib may be anywhere.
self=$0
# The system's own readlink: PATH may begin with a folder where somebody else put another.
[ -h "$self" ] && self=$(PATH=/usr/bin:/bin; readlink -f "$self")
lib=${self%/*}/../lib/cpn
# A daemon stays, and takes no memory in advance: a small nursery of the heap, its parser of HTTP compiled the plain way, and one arena
# of the C library for all threads.
lean=
[ "$1" = run ] && lean='--max-semi-space-size=1 --liftoff-only' && export MALLOC_ARENA_MAX="${MALLOC_ARENA_MAX:-1}"
exec "$lib/node" $lean "$lib/start.cjs" "$@"
