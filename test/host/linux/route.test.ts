import { describe, expect, test, vi } from 'vitest';
import { parseAddress } from '../../../src/core/net/cidr.ts';
import type { PacketOrigin } from '../../../src/host/host.ts';
import { addRoutes, startTunnel } from '../steps.ts';

vi.setConfig({ testTimeout: 60_000 });

describe('what the kernel does with a packet', () => {
  test('is described by link, source, gateway, table and the matching route', async () => {
    await using machine = await startTunnel(...addRoutes('10.1.0.0/16'));
    await machine.sh(`ip link add eth0 type veth peer name lan; ip link set lan up; ip link set eth0 up
      ip address add 192.0.2.10/24 dev eth0; ip address add 2001:db8::10/64 dev eth0 nodad
      ip route add default via 192.0.2.1 dev eth0; ip -6 route add default via 2001:db8::1 dev eth0 proto static
      ip route add 10.1.2.0/24 dev eth0 proto static; ip route add 10.5.0.0/16 via inet6 fe80::1 dev eth0
      ip rule add to 10.6.0.0/16 lookup 100; ip route add default via 192.0.2.2 dev eth0 table 100`);
    const route = (to: string, packet: PacketOrigin = {}) => machine.host.route(parseAddress(to), packet);
    const byTunnel = { link: 'cpn0', local: false, source: '10.77.0.5', gateway: null, table: 'main' };
    const byCard = { ...byTunnel, link: 'eth0', source: '192.0.2.10' };
    expect(await route('10.1.9.9')).toEqual({ ...byTunnel, prefix: '10.1.0.0/16', protocol: '157' });
    expect(machine.spawned).toHaveLength(1);
    expect(await route('10.77.0.9')).toEqual({ ...byTunnel, prefix: '10.77.0.0/24', protocol: 'kernel' });
    expect(await route('10.1.2.3')).toEqual({ ...byCard, prefix: '10.1.2.0/24', protocol: 'static' });
    expect(await route('10.5.0.1')).toMatchObject({ ...byCard, gateway: 'fe80::1' });
    const byDefault = { ...byCard, gateway: '192.0.2.1', prefix: '0.0.0.0/0', protocol: 'boot' };
    expect(await route('203.0.113.1')).toEqual(byDefault);
    expect(await route('10.6.0.1')).toEqual({ ...byDefault, gateway: '192.0.2.2', table: '100' });
    expect(await route('10.77.0.5')).toMatchObject({ local: true, prefix: '10.77.0.5/32', table: '255' });
    await vi.waitFor(
      async () =>
        expect(await route('2001:db8:9::1')).toEqual({
          ...byCard,
          source: '2001:db8::10',
          gateway: '2001:db8::1',
          prefix: '::/0',
          protocol: 'static',
        }),
      { timeout: 10_000 },
    );
    // From our own address the way may be another, as the reverse path filter would see it.
    await machine.sh('ip rule add from 10.77.0.5 lookup 100');
    expect(await route('10.77.0.9')).toMatchObject({ link: 'cpn0' });
    expect(await route('10.77.0.9', { source: parseAddress('10.77.0.5') })).toMatchObject({
      link: 'eth0',
      table: '100',
    });
    // And so may the way of WireGuard's own packets, which have a mark.
    await machine.sh('ip rule add fwmark 0x2053 lookup 100');
    expect(await route('10.1.9.9', { mark: 0x2053 })).toMatchObject({ link: 'eth0', table: '100' });
  });

  test('may be to refuse it, with a reason', async () => {
    await using machine = await startTunnel();
    await machine.sh(`ip route add blackhole 10.2.0.0/16; ip route add unreachable 10.3.0.0/16; ip route add prohibit 10.4.0.0/16
      ip -6 route add blackhole 2001:db8:2::/48`);
    const why = async (to: string) => machine.host.route(parseAddress(to));
    expect(await why('10.2.0.1')).toEqual({ link: null, why: 'blackhole' });
    expect(await why('10.3.0.1')).toEqual({ link: null, why: 'unreachable' });
    expect(await why('10.4.0.1')).toEqual({ link: null, why: 'prohibit' });
    expect(await why('2001:db8:2::1')).toEqual({ link: null, why: 'blackhole' });
    expect(await why('203.0.113.1')).toEqual({ link: null, why: 'none' });
    expect(await why('2001:db8::1')).toEqual({ link: null, why: 'none' });
  });
});
