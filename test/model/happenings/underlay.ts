/** What surrounds a host: its DHCP server, its resolver, its proxy, its addresses, and a copy of itself. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { startDaemon } from '../../lab/daemon.ts';
import { eventually } from '../../lab/eventually.ts';
import { HttpProxy } from '../../lab/http-proxy.ts';
import { type Member, type Model, members } from '../model.ts';
import type { Day } from './happening.ts';
import { happening } from './happening.ts';
import { toggleRoute } from './service.ts';

/** A part of the first LAN, without its server. */
const partOfFirst = '192.168.50.128/25';

/** A server in the second LAN that a local resolver queries. */
const stubServer = '192.168.60.53';

/** A global address for each host that has a card in the WAN. */
const addresses6: Partial<Record<Member, string>> = {
  'edge-1': '2001:db8::31',
  'edge-2': '2001:db8::32',
  origin: '2001:db8::22',
};

const patience = { timeoutMs: 60_000, everyMs: 500 };

async function followOption121({ site }: Day, name: Member): Promise<void> {
  const router = name === 'laptop' ? '192.168.1.1' : '203.0.113.66';
  const route = `${partOfFirst} via ${router} dev eth0 proto dhcp`;
  await site.sh(name, `ip route add ${route}`);
  const isReported = async () =>
    (await site.cpn(name, ['status'], { allowFailure: true })).stdout.includes(partOfFirst);
  await eventually('status reports the route', isReported, patience);
  await site.sh(name, `ip route delete ${route}`);
}

async function queryThroughStub(day: Day, name: Member, model: Model): Promise<void> {
  const { site, invariants } = day;
  const stub = site
    .host(name)
    .spawn([
      ...['dnsmasq', '--keep-in-foreground', '--conf-file=/dev/null', '--no-resolv', '--user=root'],
      ...['--listen-address=127.0.0.1', '--bind-interfaces', `--server=${stubServer}`],
    ]);
  await site.setResolver(name, '127.0.0.1');
  await toggleRoute(day, model, 'second');
  await invariants.awaitLan('second', [name]);
  const route = await site.host(name).exec(['ip', 'route', 'get', stubServer], { allowFailure: true });
  expect(route.stdout, 'the server of the local resolver').not.toContain('cpn0');
  await stub.stop();
  await toggleRoute(day, model, 'second');
}

async function goThroughProxy({ site }: Day, name: Member): Promise<void> {
  const proxy = await HttpProxy.start(site.stranger);
  try {
    await site.cpn(name, ['set', 'office', '--proxy', proxy.url]);
    const waits = async () => {
      const { stdout } = await site.cpn(name, ['status', 'office', '--json'], { allowFailure: true });
      const [{ sync }] = JSON.parse(stdout).networks;
      return sync.mode === 'push' && !sync.error;
    };
    await eventually('the host waits for changes through the proxy', waits, patience);
    await site.cpn(name, ['set', 'office', '--proxy', 'none']);
  } finally {
    await proxy.stop();
  }
}

async function changeFamily({ site, invariants }: Day, name: Member, model: Model): Promise<void> {
  const both = [...model.present].filter((each) => addresses6[each] !== undefined);
  const change = (verb: string) =>
    Promise.all(both.map((each) => site.sh(each, `ip address ${verb} ${addresses6[each]}/64 dev eth0 nodad`)));
  const address = addresses6[name];
  await change('add');
  await site.cpn(name, ['set', 'office', '--endpoint', `[${address}]:51820`]);
  const other = both.find((each) => each !== name) ?? name;
  // WireGuard goes back to the other family with the next packet that comes from there.
  const hasRead = async () =>
    (await readFile(join(site.host(other).stateDir, 'cpn0.json'), 'utf8')).includes(`[${address}]`);
  await eventually(`${other} has read the IPv6 endpoint of ${name}`, hasRead, patience);
  await invariants.awaitPeers(name, { ...model, present: new Set(both) });
  const before = name === 'origin' ? site.host(name).address : site.addresses[name as 'edge-1'];
  await site.cpn(name, ['set', 'office', '--endpoint', `${before}:51820`]);
  await change('delete');
}

/** Each copy is a host of its own: what an earlier one of the day had is gone. */
let copies = 0;

async function runCopy({ site, invariants }: Day, name: Member, model: Model): Promise<void> {
  // Packets of the session that reach the copy end it.
  invariants.endSession();
  const host = site.host(name);
  const { lab, controlPlane } = site.center;
  copies += 1;
  const copy = await lab.addHost(`copy-${copies}`, { address: `203.0.113.${100 + copies}/24` });
  await copy.exec(['cp', '-a', host.stateDir, copy.stateDir]);
  await copy.exec(['cp', '-a', `${host.configDir}/cpn0.conf`, copy.configDir]);
  const daemon = await startDaemon(copy);
  const isNoticed = async () => {
    // Each change of the network makes both request the map.
    await controlPlane.cpn(['network', 'update', 'office', '--description', `${Date.now()}`]);
    const { stdout } = await controlPlane.cpn(['events', 'office', '--json', '--type', 'peer.cloned']);
    return JSON.parse(stdout).events.length > 0;
  };
  await eventually('the copy is noticed', isNoticed, patience);
  await daemon.stop();
  await copy.powerOff();
  model.copied.add(name);
}

export const underlayHappenings = [
  happening({
    what: 'DHCP adds a route inside an accepted one (option 121), and takes it away',
    to: ['origin', 'laptop'],
    can: (model, name) => model.present.has(name) && model.routed.has('first'),
    do: (day, name) => followOption121(day, name),
  }),
  happening({
    what: 'a local resolver queries a server in a LAN that is advertised for a while',
    to: ['laptop'],
    can: (model, name) => model.present.has(name) && !model.routed.has('second'),
    do: (day, name, model) => queryThroughStub(day, name, model),
  }),
  happening({
    what: 'the control plane is behind an HTTP proxy, and no more',
    to: members,
    do: (day, name) => goThroughProxy(day, name),
  }),
  happening({
    what: 'the endpoint is of the other family, and back',
    to: ['edge-1', 'edge-2', 'origin'],
    do: (day, name, model) => changeFamily(day, name, model),
  }),
  happening({
    what: 'a copy of the host runs for a while',
    to: ['origin'],
    can: (model, name) => model.present.has(name) && !model.elsewhere.has(name) && !model.copied.has(name),
    do: (day, name, model) => runCopy(day, name, model),
  }),
];
