import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { joinHost } from '../lab/control-plane.ts';
import type { Host } from '../lab/host.ts';
import { join, type Office, patiently, startOffice } from './office.ts';

let office: Office;
let connector: Host;
let origin: Host;

/** In the LAN behind the connector. */
const lanHost = '192.168.50.9';

beforeAll(async () => {
  office = await startOffice();
  connector = await office.lab.addHost('connector', { address: '203.0.113.11/24' });
  const lan = await office.lab.addLan(connector, '192.168.50.1/24');
  await lan.addHost('nas', `${lanHost}/24`);
  origin = await office.lab.addHost('origin', { address: '203.0.113.22/24' });
  await join(office, connector, '--type', 'connector', '--endpoint', '203.0.113.11:51820');
  await joinHost(office.controlPlane, origin, {
    network: 'office',
    flags: ['--endpoint', '203.0.113.22:51820'],
    before: [connector],
  });
}, 90_000);

afterAll(() => office?.lab.stop());

interface Explained {
  readonly exitCode: number | null;
  readonly address: string;
  readonly network: { readonly name: string } | null;
  readonly interface: string | null;
  readonly stops_at: string | null;
  /** Each check's verdict and text, by its name. */
  readonly ok: Readonly<Record<string, boolean | null>>;
  readonly detail: Readonly<Record<string, string>>;
}

async function explain(host: Host, address: string): Promise<Explained> {
  const { stdout, exitCode } = await host.cpn(['explain', address, '--json'], { allowFailure: true });
  const { checks, ...rest } = JSON.parse(stdout);
  const by = (field: string) =>
    Object.fromEntries(checks.map((each: Record<string, unknown>) => [each.check, each[field]]));
  return { ...rest, exitCode, ok: by('ok'), detail: by('detail') };
}

const sh = (host: Host, script: string) => host.exec(['sh', '-ec', script]);

/** Changes a host while `look` runs, and undoes the change. */
async function meanwhile(host: Host, change: string, undo: string, look: () => Promise<void>): Promise<void> {
  await sh(host, change);
  try {
    await look();
  } finally {
    await sh(host, undo);
  }
}

const through = { network: true, route: true, allowed_ips: true, rp_filter: true, handshake: true };

describe('nothing stops a packet', () => {
  it('it reaches a peer that answers, by its address or its name', async () => {
    expect(await origin.ping('10.77.0.1', patiently)).toMatchObject({ received: 1 });
    const seen = await explain(origin, '10.77.0.1');
    expect(seen).toMatchObject({
      exitCode: 0,
      network: { name: 'office' },
      interface: 'cpn0',
      stops_at: null,
      ok: through,
    });
    expect(seen.detail).toMatchObject({
      network: 'connector (connector) of network office, reached directly',
      route: 'leaves by cpn0 from 10.77.0.2, by the route to 10.77.0.0/24 (kernel)',
      allowed_ips: '10.77.0.1/32 belongs to connector',
      handshake: expect.stringMatching(/^connector: last handshake .* ago, at 203\.0\.113\.11:51820$/),
      mtu: expect.stringMatching(/^packets up to 1420 bytes/),
    });
    expect((await explain(origin, 'connector')).address).toBe('10.77.0.1');
    const { stdout } = await origin.cpn(['explain', 'connector']);
    expect(stdout).toMatch(
      /^10\.77\.0\.1 {2}network office \(\d+\) on cpn0 {2}the address of connector in network office\n/,
    );
    expect(stdout).toMatch(/^ok +handshake +connector: /m);
    expect(stdout).toMatch(/^nothing blocks a packet to 10\.77\.0\.1$/m);
  });

  it('it reaches a host behind a connector, also from the connector itself', async () => {
    expect(await origin.ping(lanHost, patiently)).toMatchObject({ received: 1 });
    const seen = await explain(origin, lanHost);
    expect(seen).toMatchObject({ exitCode: 0, stops_at: null, ok: through });
    expect(seen.detail.network).toBe('behind 192.168.50.0/24 of network office, by connector (active)');
    const there = await explain(connector, lanHost);
    expect(there).toMatchObject({
      exitCode: 0,
      stops_at: null,
      interface: 'cpn0',
      ok: { network: true, route: true, firewall: true },
    });
    expect(there.detail.route).toBe('leaves by eth1 from 192.168.50.1, by the route to 192.168.50.0/24 (kernel)');
  });

  it('it reaches its own address, and one outside the network', async () => {
    expect(await explain(origin, '10.77.0.2')).toMatchObject({
      exitCode: 0,
      ok: { network: true, route: true },
      detail: { network: "this host's own address in network office", route: 'stays on this host' },
    });
    expect(await explain(origin, '203.0.113.1')).toMatchObject({
      exitCode: 0,
      network: null,
      interface: null,
      stops_at: null,
      ok: { network: null, route: true },
      detail: { route: 'leaves by eth0 from 203.0.113.22, by the route to 203.0.113.0/24 (kernel)' },
    });
  });

  it('while the control plane is unreachable', async () => {
    await office.controlPlane.host.uplink.cut();
    try {
      expect(await explain(origin, '10.77.0.1')).toMatchObject({ exitCode: 0, stops_at: null });
    } finally {
      await office.controlPlane.host.uplink.restore();
    }
  });
});

describe('a packet stops', () => {
  it('it does where the guard refused the route', async () => {
    const host = await office.lab.addHost('neighbour', { address: '203.0.113.33/24' });
    await host.plug(await office.lab.addSegment('own-lan'), { address: '192.168.50.7/24' });
    await join(office, host, '--type', 'admin_device');
    const seen = await explain(host, lanHost);
    expect(seen).toMatchObject({
      exitCode: 3,
      interface: 'cpn0',
      stops_at: 'network',
      ok: { network: false, route: null },
    });
    expect(seen.detail.network).toMatch(
      /it is refused here: overlaps 192\.168\.50\.0\/24, .*--allow-route 192\.168\.50\.0\/24/,
    );
    expect(seen.detail.route).toMatch(/^leaves by eth1 from 192\.168\.50\.7/);
  });

  it('it does where another program has a more specific route, and only there', async () => {
    const part = '192.168.50.128/25 via 203.0.113.1';
    await meanwhile(origin, `ip route add ${part}`, `ip route delete ${part}`, async () => {
      const seen = await explain(origin, '192.168.50.200');
      expect(seen).toMatchObject({ exitCode: 3, stops_at: 'route', ok: { ...through, route: false } });
      expect(seen.detail.route).toMatch(
        /^leaves by eth0 via 203\.0\.113\.1 .*remove the route to 192\.168\.50\.128\/25 by eth0/,
      );
      expect((await explain(origin, lanHost)).stops_at).toBeNull();
      const { stdout } = await origin.cpn(['explain', '192.168.50.200'], { allowFailure: true });
      expect(stdout.trimEnd().split('\n').at(-1)).toBe(
        'dropped at route: remove the route to 192.168.50.128/25 by eth0, or narrow it',
      );
    });
  });

  it('it does where the route is gone, and a strict filter would drop the answer too', async () => {
    const change =
      'ip route delete 192.168.50.0/24 dev cpn0 table 8350; echo 1 >/proc/sys/net/ipv4/conf/cpn0/rp_filter';
    const undo =
      'ip route add 192.168.50.0/24 dev cpn0 table 8350 proto 157; echo 0 >/proc/sys/net/ipv4/conf/cpn0/rp_filter';
    await meanwhile(origin, change, undo, async () => {
      const seen = await explain(origin, lanHost);
      expect(seen).toMatchObject({
        exitCode: 3,
        stops_at: 'route',
        ok: { ...through, route: false, rp_filter: false },
      });
      expect(seen.detail.route).toMatch(/^this host has no route there; "cpn reconcile"/);
      expect(seen.detail.rp_filter).toMatch(
        /^strict, and drops replies that arrive on cpn0: this host has no route there/,
      );
    });
  });

  it('it does where a rule leads the answer elsewhere, and the filter is strict: no answer arrives', async () => {
    const change = `ip route add default via 203.0.113.1 table 100; ip rule add from 10.77.0.2 lookup 100
      echo 1 >/proc/sys/net/ipv4/conf/cpn0/rp_filter`;
    const undo = `ip rule delete from 10.77.0.2 lookup 100; ip route flush table 100
      echo 0 >/proc/sys/net/ipv4/conf/cpn0/rp_filter`;
    await meanwhile(origin, change, undo, async () => {
      const seen = await explain(origin, '10.77.0.1');
      expect(seen).toMatchObject({ exitCode: 3, stops_at: 'rp_filter', ok: { ...through, rp_filter: false } });
      expect(seen.detail.rp_filter).toMatch(/the return path leaves by eth0 via 203\.0\.113\.1.* of table 100/);
      expect(await origin.ping('10.77.0.1')).toMatchObject({ received: 0 });
      await sh(origin, 'echo 2 >/proc/sys/net/ipv4/conf/cpn0/rp_filter');
      expect((await explain(origin, '10.77.0.1')).stops_at).toBeNull();
      expect(await origin.ping('10.77.0.1')).toMatchObject({ received: 1 });
    });
  });

  it('at a connector where another program drops what it forwards', async () => {
    const table = `nft -f - <<'END'
      table ip filter { chain FORWARD { type filter hook forward priority 0; policy drop; }; }
END`;
    await meanwhile(connector, table, 'nft delete table ip filter', async () => {
      const seen = await explain(connector, lanHost);
      expect(seen).toMatchObject({
        exitCode: 3,
        stops_at: 'firewall',
        ok: { network: true, route: true, firewall: false },
      });
      expect(seen.detail.firewall).toMatch(/do not get through nft table ip filter.*policy/);
      expect(await origin.ping(lanHost)).toMatchObject({ received: 0 });
    });
    expect(await explain(connector, lanHost)).toMatchObject({ exitCode: 0, ok: { firewall: true } });
  });

  it('it does where no route leads to the endpoint of the peer', async () => {
    const subnet = '203.0.113.0/24 dev eth0';
    const undo = `ip route add ${subnet} proto kernel scope link src 203.0.113.22`;
    await meanwhile(origin, `ip route delete ${subnet}`, undo, async () => {
      const seen = await explain(origin, '10.77.0.1');
      expect(seen).toMatchObject({ exitCode: 3, stops_at: 'endpoint', ok: { route: true, endpoint: false } });
      expect(seen.detail.endpoint).toMatch(/^connector at 203\.0\.113\.11:51820: this host has no route there; /);
    });
    expect(await explain(origin, '10.77.0.1')).toMatchObject({ exitCode: 0, ok: { endpoint: true } });
  });

  it('it does where the interface is down, and where the network was taken down', async () => {
    await meanwhile(origin, 'ip link set cpn0 down', 'ip link set cpn0 up', async () => {
      const seen = await explain(origin, '10.77.0.1');
      expect(seen).toMatchObject({ exitCode: 3, stops_at: 'route' });
      expect(seen.detail.route).toMatch(/^cpn0 is down; "cpn reconcile"/);
    });
    await origin.cpn(['down']);
    const seen = await explain(origin, '10.77.0.1');
    expect(seen).toMatchObject({ exitCode: 3, interface: 'cpn0', stops_at: 'network' });
    expect(seen.detail.network).toMatch(/"cpn up cpn0" brings it up$/);
    await origin.cpn(['up']);
    expect((await explain(origin, '10.77.0.1')).ok).toMatchObject({ network: true, route: true, allowed_ips: true });
  });

  it('at a peer that has never answered', async () => {
    const mute = await office.lab.addHost('mute', { address: '203.0.113.44/24' });
    const { address } = await join(office, mute, '--endpoint', '203.0.113.44:51820');
    await mute.uplink.cut();
    await origin.cpn(['reconcile']);
    expect(await origin.ping(address)).toMatchObject({ received: 0 });
    const seen = await explain(origin, 'mute');
    expect(seen).toMatchObject({ exitCode: 3, address, stops_at: 'handshake', ok: { ...through, handshake: false } });
    expect(seen.detail.handshake).toMatch(
      /never a handshake, at 203\.0\.113\.44:51820, \d+ bytes sent; check that cpn is up on mute/,
    );
  });

  it('it does where the peer of WireGuard is another, or there is no such address', async () => {
    const { stdout } = await origin.exec(['wg', 'show', 'cpn0', 'allowed-ips']);
    const [key = ''] =
      stdout
        .split('\n')
        .find((line) => line.includes('192.168.50.0/24'))
        ?.split('\t') ?? [];
    const set = (prefixes: string) => `wg set cpn0 peer ${key} allowed-ips ${prefixes}`;
    await meanwhile(origin, set('10.77.0.1/32'), set('10.77.0.1/32,192.168.50.0/24'), async () => {
      const seen = await explain(origin, lanHost);
      expect(seen).toMatchObject({ exitCode: 3, stops_at: 'allowed_ips' });
      expect(seen.detail.allowed_ips).toMatch(
        /^no peer of cpn0 has it among its allowed IPs; it should be connector; /,
      );
    });
    expect(await explain(origin, '10.77.0.200')).toMatchObject({ exitCode: 3, stops_at: 'network' });
  });

  it('it does where a host has no route to an address outside the network', async () => {
    expect(await explain(origin, '198.51.100.1')).toMatchObject({
      exitCode: 3,
      network: null,
      stops_at: 'route',
      ok: { network: null, route: false },
    });
  });
});

it('is not explained for what is no address, nor on a host without a network', async () => {
  const fail = async (host: Host, address: string) => host.cpn(['explain', address], { allowFailure: true });
  expect(await fail(origin, 'absent')).toMatchObject({
    exitCode: 2,
    stderr: expect.stringMatching(/^cpn: address "absent" is neither an IP address, nor a peer of/),
  });
  const fresh = await office.lab.addHost('fresh', { address: '203.0.113.55/24' });
  expect(await fail(fresh, '10.77.0.1')).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('"cpn join"') });
});
