# Restarts, power cuts, and a first boot. Sourced by run.

ping_after_restart() {
  is_of_kernel cpn0
  equals "$(systemctl is-active cpn)" active
  ping_there
  ping -c 3 -i 0.2 192.168.50.1
}

see_bound_service() {
  equals "$(systemctl is-active bound)" active
  # It has seen what it is for; the host will have another address.
  rm $mine/bound
}

start_control_plane() { systemctl enable --now cpn-control-plane; }

# cut_during NAME START HOOK: cuts the power at the moment at which HOOK succeeds after START was begun in the background. The next boot
# writes down that it happened: nothing may be written now that would write what the join has not written yet.
cut_during() {
  echo "$1" >$mine/cut
  sync
  began=$EPOCHREALTIME
  (set -x; "$2") >"$out/$2.log" 2>&1 &
  if "$3" >/dev/null 2>&1; then cut_power; fi
  rm $mine/cut
  write_result "$1" false 0 "$2.log"
  exit 1
}

# at_once COMMAND…: waits for the first moment at which a command succeeds, without a pause.
at_once() {
  local end=$((SECONDS + patience))
  until "$@"; do [ $SECONDS -lt $end ] || return 1; done
}

tell_cut() {
  [ -e $mine/cut ] || return 0
  write_result "$(cat $mine/cut)" true 0 -
  rm $mine/cut
}

join_again() { cpn join - --api $api --insecure-http --wait 0 <$mine/key-"$1"; }

join_second() { join_again second; }
see_second_keys() { at_once test -e /var/lib/cpn/cpn1.json; }

join_third() { join_again third; }

# Entries from before the join are those of other joins. journalctl ends later than grep, and the shell does not wait for it.
see_third_enrolled() {
  grep --max-count=1 -E '"/api/networks/enroll".*"status":201' \
    < <(timeout "$patience" journalctl --since "@$began" --unit cpn-control-plane --output cat --lines all --follow)
}

# is_whole NUMBER: this host alone is in the network, by one use of its key, and the host needs no change.
is_whole() {
  equals "$(count_peers "$1")" 1
  equals "$(count_uses "$1")" 1
  # The daemon sets the names once it serves them.
  eventually cpn plan cpn1
}

finish_second() {
  join_second
  is_whole 2
  ip address show dev cpn1 | grep -F 10.78.0.1/
}

leave_second() {
  cpn leave second --yes --verify
  equals "$(count_peers 2)" 0
  ping -c 1 -W $patience $there
}

finish_third() {
  equals "$(count_peers 3)" 1
  join_third
  is_whole 3
  ip address show dev cpn1 | grep -F 10.79.0.1/
}

leave_all() {
  cpn leave --yes --all
  equals "$(systemctl is-enabled cpn || true)" disabled
  equals "$(systemctl is-active cpn || true)" inactive
  equals "$(ls -A /var/lib/cpn)" ''
  equals "$(cat /proc/sys/net/ipv4/ip_forward)" 0
  see_no_names
}

configure_first_boot() {
  umask 077
  cp $mine/key-first /etc/credstore/cpn.enrollment-key
  put /etc/cpn/join.conf <<CONF
api = $api
insecure-http = yes
type = connector
endpoint = 203.0.113.1:51820
CONF
  sync
}

start_first_boot() { systemctl restart cpn-join; }
see_first_interface() { at_once ip link show dev cpn0; }

finish_first_boot() {
  eventually systemctl --quiet is-active cpn-join
  eventually systemctl --quiet is-active cpn
  is_of_kernel cpn0
  far reconcile
  eventually ping -c 1 -W 1 $there
  # far-1 and this host, and no peer that was left behind.
  equals "$(count_peers 1)" 2
}
