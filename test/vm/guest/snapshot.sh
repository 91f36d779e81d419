# A host as text, to be compared with itself. What changes by itself, or belongs to apt, dpkg, the journal and this test, is left out
# by name.

snapshot() {
  echo '# packages'
  dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\n'
  echo '# units'
  # The state of any other unit is a link below /etc, and all of these are listed below. It fails where there is none.
  { systemctl list-unit-files --no-legend --no-pager 'cpn*' || true; } | awk '{ print $1, $2 }'
  echo '# files'
  local own='/var/lib/(dpkg|apt|private|dbus)|/var/cache/(apt|debconf|ldconfig)|/var/log|/var/tmp|/var/lib/systemd/(random-seed|catalog|timers)'
  local etc='/etc/(machine-id|resolv.conf|\.pwd\.lock|\.updated)|/var/\.updated'
  find /etc /usr /var /opt /root /home /srv -xdev -regextype egrep -regex "$own|$etc" -prune -o \
    \( -type f -printf '%p %m %u:%g %s %T@\n' -o -printf '%p %y %m %u:%g %l\n' \) | sort
  find /etc -xdev -regextype egrep -regex "$etc" -prune -o -type f -exec sha256sum {} + | sort -k 2
  echo '# links'
  ip -o link | sed -E 's/^[0-9]+: //; s/ (qlen [0-9]+).*//'
  ip -o address | sed -E 's/^[0-9]+: //; s/valid_lft.*//'
  echo '# routes and rules'
  ip -4 route show table all
  ip -6 route show table all | sed -E 's/ (expires|pref).*//'
  ip -4 rule
  ip -6 rule
  echo '# packet rules'
  nft list ruleset
  echo '# settings'
  # Some may be written only. The first WireGuard interface of a kernel switches redirects off for all, and nothing switches them on again.
  { grep -rs '' /proc/sys/net || true; } | grep -vE '/(conf/all/send_redirects|nf_conntrack[^/]*|tcp_[^/]*|udp_mem|stable_secret|inet_peer[^/]*|flush|max_.*):' | sort
}
