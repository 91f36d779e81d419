# Pings through the tunnel while a command runs, and what was lost of them. Sourced by run.

# keeps_pinging COMMAND…: runs it while ping sends 20 packets a second to the second host, of which none may be lost. It waits for the
# reply to a packet that was sent after the command ended: the tunnel is up then.
keeps_pinging() {
  local ping sent
  ping -n -i 0.05 $there >$mine/replies 2>$mine/counts &
  ping=$!
  eventually replied_after 0
  "$@"
  # On this signal ping prints its counts to standard error.
  kill -QUIT $ping
  eventually report_sent
  sent=$(report_sent)
  eventually replied_after "$sent"
  kill -INT $ping
  wait $ping || true
  figure "pings during: $*" "$(count_sent) sent, $(count_lost) lost"
  cat $mine/counts $mine/replies
  equals "$(count_lost)" 0
}

# The numbers of the packets that were answered, in their order, once each.
list_answered() { sed -nE 's/.* icmp_seq=([0-9]+) ttl=.*/\1/p' $mine/replies | sort -nu; }

# replied_after NUMBER: whether a packet that was sent after that one was answered.
replied_after() { [ "$(count_sent)" -gt "$1" ]; }

# How many packets ping had sent at the signal.
report_sent() { tr '\r' '\n' <$mine/counts | sed -nE 's|^[0-9]+/([0-9]+) packets, .*|\1|p' | grep .; }

# How many packets were sent up to the last one that was answered, and how many of these have no reply. The reply to a later one may
# be under way when ping ends; ping's own summary counts that as a loss.
count_sent() { list_answered | awk '{ last = $1 } END { print last + 0 }'; }
count_lost() { list_answered | awk '{ last = $1 } END { print last - NR }'; }
