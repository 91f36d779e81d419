# A DNS server with one name, which has an address and no other record.
use strict;
use IO::Socket::INET;

my $socket = IO::Socket::INET->new(Proto => 'udp', LocalAddr => '192.168.50.1', LocalPort => 53) or die "no socket: $@";
my $wanted = "\2db\4corp\7example\0" . pack('n2', 1, 1);
while (1) {
  defined $socket->recv(my $query, 512) or next;
  my ($id, $question) = $query =~ /^(..).{10}(.*?\0.{4})/s or next;
  my $found = lc $question eq $wanted;
  my $answer = $found ? pack('n3 N n C4', 0xc00c, 1, 1, 60, 4, 192, 168, 50, 9) : '';
  $socket->send($id . pack('n5', 0x8580, 1, $found ? 1 : 0, 0, 0) . $question . $answer);
}
