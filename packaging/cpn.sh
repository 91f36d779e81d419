#!/bin/sh
# The command cpn of a system package: starts the private Node beside it. It needs no fixed place: usr/bin and usr/lib may be anywhere.
self=$0
# The system's own readlink: PATH may begin with a folder where somebody else put another.
[ -h "$self" ] && self=$(PATH=/usr/bin:/bin; readlink -f "$self")
lib=${self%/*}/../lib/cpn
exec "$lib/node" "$lib/start.cjs" "$@"
