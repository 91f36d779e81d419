# A host whose resolver is the dnsmasq of NetworkManager. Sourced by run.

managed=/etc/NetworkManager/dnsmasq.d/cpn-cpn0.conf

start_manager() {
  # NetworkManager would start it over D-Bus.
  systemctl mask --runtime --now systemd-resolved
  rm -r /run/systemd/resolve
  mv /etc/resolv.conf $mine/stub
  # Its dnsmasq queries a server through the interface of the connection alone.
  ip link add uplink type veth peer name uplink netns far
  ip -n far address add 198.51.100.2/24 dev uplink
  ip -n far link set uplink up
  ip netns exec far dnsmasq --conf-file=/dev/null --no-hosts --no-resolv --bind-interfaces --listen-address=198.51.100.2 \
    --host-record=www.example,192.0.2.80 --user=root --pid-file=/run/uplink-dns.pid
  # Otherwise it prefers the resolvconf of systemd-resolved, which is stopped.
  put /etc/NetworkManager/conf.d/dns.conf <<<$'[main]\ndns=dnsmasq\nrc-manager=symlink'
  systemctl start NetworkManager
  nmcli connection add type ethernet con-name uplink ifname uplink ip4 198.51.100.1/24 ipv4.dns 198.51.100.2
  eventually nmcli connection up uplink
  eventually grep -Fx 'nameserver 127.0.0.1' /etc/resolv.conf
  eventually resolves www.example 192.0.2.80
  cp /etc/resolv.conf $mine/managed
}

join_with_manager() {
  test ! -e $managed
  join_again managed
  eventually systemctl --quiet is-active cpn
  far reconcile
  see_managed_names
  # By the daemon in its sandbox.
  grep -xE 'server=/office.cpn.internal/127.77.0.[0-9]+#553' $managed
  eventually cpn plan
}

see_managed_names() {
  see_names
  eventually resolves www.example 192.0.2.80
  cmp /etc/resolv.conf $mine/managed
  equals "$(systemctl is-active systemd-resolved || true)" inactive
}

restart_manager() {
  local before
  before=$(cat /run/NetworkManager/dnsmasq.pid)
  systemctl restart NetworkManager
  eventually sh -c "grep -v '^$before$' /run/NetworkManager/dnsmasq.pid"
  see_managed_names
  test -e $managed
}

leave_with_manager() {
  cpn leave --yes --all
  equals "$(ls -A /etc/NetworkManager/dnsmasq.d)" ''
  eventually resolves www.example 192.0.2.80
  fails resolves far-1.office.cpn.internal $there
  cmp /etc/resolv.conf $mine/managed
}

stop_manager() {
  nmcli connection delete uplink
  systemctl stop NetworkManager
  kill "$(cat /run/uplink-dns.pid)"
  ip link delete uplink
  rm -rf /etc/NetworkManager/conf.d/dns.conf /var/lib/NetworkManager/* /etc/resolv.conf
  mv $mine/stub /etc/resolv.conf
  systemctl unmask --runtime systemd-resolved
  systemctl start systemd-resolved
}
