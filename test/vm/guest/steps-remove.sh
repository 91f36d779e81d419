# The next version, and the end. Sourced by run.

upgrade() {
  local index pid
  index=$(cat /sys/class/net/cpn0/ifindex)
  pid=$(systemctl show --value -p MainPID cpn)
  keeps_pinging apt-get install -y /job/new.deb
  equals "$(cat /sys/class/net/cpn0/ifindex)" "$index"
  equals "$(cpn --version)" "$(cat /job/new-version)"
  equals "$(systemctl is-active cpn cpn-control-plane | sort -u)" active
  [ "$(systemctl show --value -p MainPID cpn)" != "$pid" ]
  # The new daemon keeps it.
  wg set cpn0 peer "$(wg show cpn0 peers)" remove
  eventually ping -c 1 -W 1 $there
  eventually resolves far-1.office.cpn.internal $there
  equals "$(systemctl is-enabled cpn cpn-join cpn-control-plane | sort -u)" enabled
  see_no_failure
}

remove() {
  keeps_pinging apt-get remove -y cpn
  equals "$(systemctl is-active cpn || true)" inactive
  fails command -v cpn
  # The daemon was a DNS server.
  fails sh -c 'resolvectl dns cpn0 | grep -F :553'
  # The file is one of wg-quick, which works without the program.
  wg-quick strip cpn0 | grep -F AllowedIPs
}

purge() {
  apt-get purge -y cpn
  see_no_names
  # What the administrator of this test wrote, and what is documented to stay: the database of the control plane.
  rm -r /etc/cpn /etc/credstore
  test -d /var/lib/private/cpn-control-plane
  rm /var/lib/cpn-control-plane
  udevadm settle --timeout=20 || true
  snapshot >$mine/after
  cp $mine/before $mine/after $out
  diff -u $mine/before $mine/after
}
