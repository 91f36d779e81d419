# The control plane's administrator, in bash alone. Sourced by run.

api=http://203.0.113.1:8787

# ask METHOD PATH [JSON]: prints the reply's body; fails with a status that is no success. What goes over the wire, keys and tokens
# among it, stays out of the log.
ask() (
  set +x
  exec {wire}<>/dev/tcp/203.0.113.1/8787
  {
    printf '%s %s HTTP/1.1\r\nHost: 203.0.113.1:8787\r\nConnection: close\r\n' "$1" "$2"
    if [ -e $mine/token ]; then printf 'Authorization: Bearer %s\r\n' "$(cat $mine/token)"; fi
    if [ $# -gt 2 ]; then printf 'Content-Type: application/json\r\nContent-Length: %d\r\n' ${#3}; fi
    printf '\r\n%s' "${3-}"
  } >&"$wire"
  reply=$(cat <&"$wire")
  exec {wire}>&-
  read -r _ status _ <<<"$reply"
  printf '%s\n' "$reply" | sed '1,/^\r$/d'
  [ "$status" -lt 300 ]
)

# field NAME: the text of a field of the reply on standard input.
field() { grep -o "\"$1\":\"[^\"]*\"" | head -n 1 | cut -d'"' -f4; }

# make_network NUMBER NAME CIDR ROUTES KEY…: networks are numbered in the order in which they are made.
make_network() {
  local number=$1 key
  ask POST /api/networks "{\"name\":\"$2\",\"private_cidr\":\"$3\",\"routes\":[$4]}"
  shift 4
  for key; do
    ask POST "/api/networks/$number/enrollment-keys" "{\"name\":\"$key\"}" | field enrollment_token >$mine/key-$key
    test -s $mine/key-"$key"
  done
}

# count_peers NUMBER, and the uses of its first key.
count_peers() { { ask GET "/api/networks/$1" | grep -o '"public_key"' || true; } | wc -l; }
count_uses() { ask GET "/api/networks/$1/enrollment-keys?all=true" | grep -o '"uses":[0-9]*' | head -n 1 | cut -d: -f2; }
