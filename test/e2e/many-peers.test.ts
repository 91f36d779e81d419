import { join as path } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { fillNetworks } from '../../scripts/measure/service/fill-networks.ts';
import { openStore } from '../../src/control-plane/store/sqlite/store.ts';
import { type ControlPlane, joinHost, serveControlPlane, startControlPlane } from '../lab/control-plane.ts';
import { startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { Lab } from '../lab/lab.ts';
import { type Resolved, startResolved } from '../lab/resolved.ts';

/**
 * A laptop with an endpoint in a network of 10,000 peers without one, which would dial it. They are rows of the control plane's
 * database and peers of the laptop's tunnel, but no hosts.
 */
let lab: Lab;
let controlPlane: ControlPlane;
let laptop: Host;
let resolved: Resolved;

const count = 10_000;
const network = 'network-0';
const nameOf = (peer: string) => `${peer}.${network}.cpn.internal`;
const join = (host: Host, ...flags: string[]) =>
  joinHost(controlPlane, host, { network, flags: ['--wait', '0', ...flags] });

beforeAll(async () => {
  lab = await Lab.start({ commandServers: true });
  controlPlane = await startControlPlane(lab);
  const { host, process } = controlPlane;
  await process.stop();
  const store = await openStore(path(host.folder, 'data'));
  await fillNetworks(store.db, 1, count);
  // Handshakes with hosts that do not exist would delay each configuration of wireguard-go.
  await store.db.updateTable('peers').set({ endpoint: null }).execute();
  await store.close();
  await serveControlPlane(host, host.address, path(host.homeDir, 'password'), []);
  laptop = await lab.addHost('laptop', { address: '203.0.113.251/24' });
  resolved = await startResolved(laptop);
  await join(laptop, '--endpoint', `${laptop.address}:51820`);
  await startDaemon(laptop);
}, 120_000);

afterAll(() => lab?.stop());

it('resolves the first and the last of 10,000 peers, both ways', async () => {
  await eventually('a name resolves', async () =>
    expect(await resolved.query(nameOf('edge-1'))).toEqual(['10.64.0.1']),
  );
  expect((await laptop.exec(['wg', 'show', 'cpn0', 'peers'])).stdout.trim().split('\n')).toHaveLength(count);
  expect(await resolved.query(nameOf(`edge-${count}`))).toEqual(['10.64.39.16']);
  expect(await resolved.query('1.0.64.10.in-addr.arpa', 'PTR')).toEqual([nameOf('edge-1')]);
  expect(await resolved.query('16.39.64.10.in-addr.arpa', 'PTR')).toEqual([nameOf(`edge-${count}`)]);
});

it('answers that a name does not exist', async () => {
  expect(await resolved.query(nameOf('none'))).toEqual(['ENOTFOUND']);
  expect(await resolved.query('1.0.127.10.in-addr.arpa', 'PTR')).toEqual(['ENOTFOUND']);
});

it('resolves one more peer once it has joined', async () => {
  const added = await lab.addHost('added', { address: '203.0.113.252/24' });
  const { address } = await join(added);
  await eventually('its name resolves', async () => expect(await resolved.query(nameOf('added'))).toEqual([address]));
  const reverse = address.split('.').toReversed().join('.');
  expect(await resolved.query(`${reverse}.in-addr.arpa`, 'PTR')).toEqual([nameOf('added')]);
});
