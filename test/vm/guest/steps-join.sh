# From a bare host to one that is in a network. Sourced by run.

here=10.77.0.1
there=10.77.0.2

prepare() {
  mkdir -p $mine/far/{state,config} /var/lib/prometheus/node-exporter
  # Modules bring settings of their own.
  modprobe -a wireguard nf_tables nf_conntrack 2>/dev/null || true
  udevadm settle --timeout=20 || true
  snapshot >$mine/before
}

install() {
  local started=$EPOCHREALTIME
  apt-get install -y /job/old.deb
  figure 'ms to install' $(((${EPOCHREALTIME/./} - ${started/./}) / 1000))
  started=$EPOCHREALTIME
  equals "$(cpn --version)" "$(cat /job/old-version)"
  figure 'ms of cpn --version' $(((${EPOCHREALTIME/./} - ${started/./}) / 1000))
  equals "$(systemctl is-enabled cpn cpn-control-plane cpn-join || true)" $'disabled\ndisabled\nenabled'
  see_no_failure
}

see_no_failure() { equals "$(systemctl --failed --no-legend)" ''; }

serve_control_plane() {
  # Of Type=notify: it listens when this returns.
  . /job/start-control-plane.sh
  equals "$(stat -c %a /etc/credstore/cpn.owner-password)" 600
  umask 077
  [ "$(stat -c %u "/proc/$(systemctl show --value -p MainPID cpn-control-plane)")" != 0 ]
  log_in
  make_network 1 office 10.77.0.0/24 '"192.168.50.0/24","192.168.60.0/24"' edge-1 far-1 first managed
  make_network 2 second 10.78.0.0/24 '' second
  make_network 3 third 10.79.0.0/24 '' third
}

# In a shell of its own, whose commands are not logged: the password is among their words.
log_in() (
  set +x
  ask POST /api/auth/login "{\"email\":\"me@example.net\",\"password\":\"$(cat /etc/credstore/cpn.owner-password)\"}" |
    field access_token >$mine/token
)

join_here() {
  cpn join - --api $api --insecure-http --type connector --endpoint 203.0.113.1:51820 <$mine/key-edge-1
  ip address show dev cpn0 | grep -F $here/
  is_of_kernel cpn0
  equals "$(systemctl is-enabled cpn)" enabled
  # Enabled without waiting, as at a boot it may have to wait for the very one that joins.
  eventually systemctl --quiet is-active cpn
}

# Where the kernel has WireGuard, nothing else may be it, also where wireguard-go is installed.
is_of_kernel() {
  if [ "$kind" = vm ]; then
    ip -d link show dev "$1" | grep -w wireguard
    fails pidof wireguard-go
  else
    ip link show dev "$1"
  fi
}

see_sandbox() {
  local pid
  pid=$(systemctl show --value -p MainPID cpn)
  # CAP_NET_ADMIN, CAP_NET_RAW and CAP_NET_BIND_SERVICE, and nothing to get more by.
  grep -E '^CapBnd:\s0*3400$' "/proc/$pid/status"
  grep -E '^NoNewPrivs:\s1$' "/proc/$pid/status"
  grep -E '^Seccomp:\s2$' "/proc/$pid/status"
  fails nsenter --target "$pid" --mount touch /usr/cpn-was-here
  eventually has_status 'reconciling cpn0'
}

has_status() { [ "$(systemctl show --value -p StatusText cpn)" = "$1" ]; }

# The second host's command.
far() {
  ip netns exec far env CPN_STATE_DIR=$mine/far/state CPN_CONFIG_DIR=$mine/far/config CPN_RUNTIME_DIR=/run/far \
    /job/far/usr/bin/cpn "$@"
}

join_far() {
  far join - --api $api --insecure-http --name far-1 --type connector --endpoint 203.0.113.2:51820 --interface far0 --no-enable \
    --wait 0 <$mine/key-far-1
  # This host has it once its daemon has configured the kernel.
  ping_there
  ip netns exec far ping -c 2 -i 0.2 $here
}

ping_there() {
  eventually ping -c 1 -W 1 $there
  ping -c 5 -i 0.2 $there
}

change_network() {
  ask PATCH /api/networks/1/peers/2 '{"routes":["192.168.50.0/24"]}'
  ask PATCH /api/networks/1/peers/1 '{"routes":["192.168.60.0/24"]}'
  ask PATCH /api/networks/1 '{"route_dns":[{"route":"192.168.50.0/24","dns_servers":["192.168.50.1"],"domains":["corp.example"]}]}'
  eventually has_route 192.168.50.0/24
  eventually ping -c 1 -W 1 192.168.50.1
  # What a connector needs of the kernel.
  equals "$(cat /proc/sys/net/ipv4/conf/cpn0/forwarding)" 1
  eventually forwards 192.168.60.0/24
  # Confirmed, and so kept over a restart.
  eventually grep -F 192.168.50.0/24 /etc/wireguard/cpn0.conf
}

has_route() { ip route show table all proto 157 | grep -F "$1 dev cpn0"; }
forwards() { nft list table inet cpn_cpn0 | grep -F "$1"; }

resolve_names() {
  local index
  index=$(cat /sys/class/net/cpn0/ifindex)
  see_names
  getent hosts $there | grep -w far-1.office.cpn.internal
  resolvectl domain cpn0 | grep -F '~office.cpn.internal'
  equals "$(resolvectl dns cpn0)" "Link $index (cpn0): $here:553"
  equals "$(resolvectl default-route cpn0)" "Link $index (cpn0): no"
  systemctl restart systemd-resolved
  see_names
  resolvectl revert cpn0
  see_names
}

see_names() {
  eventually resolves far-1.office.cpn.internal $there
  eventually resolves db.corp.example 192.168.50.9
}

# systemd-resolved of this host is on the bus of that namespace too, and has other interfaces with the same numbers.
see_no_names_far() {
  far reconcile
  far status far0 | grep 'corp.example .* it needs a local resolver'
}

# As on a host that never had systemd-resolved.
resolve_nothing() {
  systemctl stop systemd-resolved
  rm -r /run/systemd/resolve
  mv /etc/resolv.conf $mine/stub
  echo 'nameserver 203.0.113.2' >/etc/resolv.conf
  cp /etc/resolv.conf $mine/plain
  # Neither the end of the daemon nor its start starts the resolver.
  systemctl restart cpn
  equals "$(systemctl is-active systemd-resolved || true)" inactive
  cpn status cpn0 | grep 'corp.example .* it needs a local resolver'
  cpn doctor
  cpn plan cpn0
  cmp /etc/resolv.conf $mine/plain
  mv $mine/stub /etc/resolv.conf
  systemctl start systemd-resolved
  see_names
}

# resolves NAME ADDRESS: as programs of the C library do.
resolves() { getent hosts "$1" | grep -F "$2 "; }

see_no_names() {
  fails sh -c 'resolvectl | grep -F cpn'
  equals "$(ls -A /run/systemd/resolve/netif)" ''
  fails resolves far-1.office.cpn.internal $there
}

mend_drift() {
  wg set cpn0 peer "$(wg show cpn0 peers)" remove
  ip route del 192.168.50.0/24 dev cpn0 table 8350
  echo 0 >/proc/sys/net/ipv4/conf/cpn0/forwarding
  eventually has_route 192.168.50.0/24
  eventually ping -c 1 -W 1 192.168.50.1
  eventually grep -qx 1 /proc/sys/net/ipv4/conf/cpn0/forwarding
}

write_metrics() {
  local file=/var/lib/prometheus/node-exporter/cpn.prom
  put /etc/systemd/system/cpn.service.d/metrics.conf <<UNIT
[Service]
Environment=CPN_METRICS_FILE=$file
UNIT
  systemctl daemon-reload
  systemctl restart cpn
  eventually grep -E '^cpn_' $file
  rm -r /etc/systemd/system/cpn.service.d
  systemctl daemon-reload
  systemctl restart cpn
  test ! -e $file
}

consult_doctor() {
  cpn doctor | tee $mine/findings
  fails grep -w dns $mine/findings
}

stop_control_plane() {
  systemctl disable --now cpn-control-plane
  # For the service that is to find its address at the next boot.
  touch $mine/bound
}
