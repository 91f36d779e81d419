"""
Sends and receives packets as they are, on tunnel devices of this network namespace, which it makes, and as the host itself. Each line of
its input is a JSON object, each line of its output the reply. Packets are in base64.

  {"nft": TEXT}      loads rules
  {"flush": true}    forgets all connections
  {"send": [[DEVICE, PACKET]...]}    a packet that arrives by a device, or one that the device `host` sends
  {"reload": [TEXT...], "times": N, "packets": N, "send": [[DEVICE, PACKET, TO, MARK, VARIES]...]}
                     loads rules N times, in turn, and at the same time sends at least N packets, in turn; the source port of UDP varies

The reply has all packets that left by a device, or were delivered to the host: {"got": [[DEVICE, PACKET]...]}. The kernel delivers no
IPv6 header to the host: a made-up one has the source alone. The reply to `reload` has how often each packet was sent, and how often it
arrived at the device TO: {"counts": [[SENT, ARRIVED]...]}.
"""
import base64, fcntl, json, os, socket, struct, subprocess, sys, time

PROTOCOLS = [1, 6, 17, 58, 253]


def open_tunnel(name):
    file = os.open('/dev/net/tun', os.O_RDWR | os.O_NONBLOCK)
    without_header = 0x1001
    fcntl.ioctl(file, 0x400454CA, struct.pack('16sH22x', name.encode(), without_header))
    return file


def open_raw(family, protocol):
    sock = socket.socket(family, socket.SOCK_RAW, protocol)
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    return sock


tunnels = {name: open_tunnel(name) for name in sys.argv[1:]}
received = [open_raw(family, each) for family in (socket.AF_INET, socket.AF_INET6) for each in PROTOCOLS]
senders = {4: open_raw(socket.AF_INET, socket.IPPROTO_RAW), 6: open_raw(socket.AF_INET6, socket.IPPROTO_RAW)}


def drain(got):
    for name, file in tunnels.items():
        while True:
            try:
                got.append([name, base64.b64encode(os.read(file, 65536)).decode()])
            except BlockingIOError:
                break
    for sock in received:
        while True:
            try:
                packet, sender = sock.recvfrom(65536)
            except BlockingIOError:
                break
            if sock.family == socket.AF_INET6:
                source = socket.inet_pton(socket.AF_INET6, sender[0].split('%')[0])
                packet = struct.pack('!IHBB16s16x', 6 << 28, len(packet), sock.proto, 64, source) + packet
            got.append(['host', base64.b64encode(packet).decode()])


def send(device, packet):
    if device != 'host':
        os.write(tunnels[device], packet)
        return
    family = packet[0] >> 4
    try:
        if family == 4:
            senders[4].sendto(packet, (socket.inet_ntop(socket.AF_INET, packet[16:20]), 0))
        else:
            senders[6].sendto(packet, (socket.inet_ntop(socket.AF_INET6, packet[24:40]), 0))
    except OSError:
        # The packet filter refused it.
        pass


def flush():
    """Deletes all entries of conntrack (IPCTNL_MSG_CT_DELETE in linux/netfilter/nfnetlink_conntrack.h)."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12) as sock:
        sock.bind((0, 0))
        request, acknowledged = 1, 4
        sock.send(struct.pack('=IHHIIBBH', 20, 1 << 8 | 2, request | acknowledged, 1, 0, 0, 0, 0))
        error = struct.unpack_from('=i', sock.recv(4096), 16)[0]
        if error != 0:
            raise OSError(-error, 'cannot flush conntrack')


def reload(texts, times, least, packets):
    packets = [[device, bytearray(base64.b64decode(packet)), *rest] for device, packet, *rest in packets]
    counts = [[0, 0] for _ in packets]
    loaded, sent, loader = 0, 0, None
    while loaded < times or sent < least:
        if loader is None and loaded < times:
            loader = subprocess.Popen(['nft', '-f', '-'], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
            loader.stdin.write(texts[loaded % len(texts)].encode())
            loader.stdin.close()
        for _ in range(20):
            for (device, packet, to, mark, varies), count in zip(packets, counts):
                if varies:
                    # Without a checksum, which IPv4 allows.
                    struct.pack_into('!H', packet, 20, 10000 + sent % 50000)
                    struct.pack_into('!H', packet, 26, 0)
                os.write(tunnels[device], packet)
                count[0] += 1
                count[1] += arrives(to, mark)
                sent += 1
        if loader is not None and loader.poll() is not None:
            if loader.returncode != 0:
                return {'error': loader.stderr.read().decode()}
            loaded, loader = loaded + 1, None
    return {'counts': counts}


def arrives(to, mark):
    found = 0
    for name, file in tunnels.items():
        while True:
            try:
                packet = os.read(file, 65536)
            except BlockingIOError:
                break
            if name == to and mark in packet:
                found = 1
    return found


def run(command):
    got = []
    drain([])
    if 'nft' in command:
        loaded = subprocess.run(['nft', '-f', '-'], input=command['nft'], capture_output=True, text=True)
        if loaded.returncode != 0:
            return {'error': loaded.stderr}
    if command.get('flush'):
        flush()
    if 'reload' in command:
        marked = [[*packet[:3], packet[3].encode(), packet[4]] for packet in command['send']]
        return reload(command['reload'], command['times'], command['packets'], marked)
    for device, packet in command.get('send', []):
        send(device, base64.b64decode(packet))
        drain(got)
    return {'got': got}


print('ready', flush=True)
for line in sys.stdin:
    print(json.dumps(run(json.loads(line))), flush=True)
