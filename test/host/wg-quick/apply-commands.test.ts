import { expect, test } from 'vitest';
import { applyCommands, needsRestart } from '../../../src/host/wg-quick/apply-commands.ts';
import {
  parseTunnelFile,
  renderTunnelFile,
  routesOf,
  withSubnetPeer,
} from '../../../src/host/wg-quick/tunnel-files.ts';
import { prefix } from '../../core/samples.ts';
import { at, makePeer, newKeyPair, newPresharedKey } from '../samples.ts';
import { address, address6 } from '../steps.ts';

const { privateKey } = newKeyPair();
const near = makePeer({ endpoint: at('203.0.113.9', 9), presharedKey: newPresharedKey(), keepalive: 25 });
const gate = makePeer({ allowedIps: ['10.77.0.2/32', '10.1.0.0/16', '10.2.0.0/16'].map(prefix) });
const device = { privateKey, listenPort: 51820, fwmark: null, peers: [near, gate] };
const file = applyCommands({ file: null, device, addresses: [] }, [
  { set: 'alias', value: 'cpn:7' },
  { set: 'mtu', value: 1380 },
  { add: 'address', address },
  { set: 'up' },
  { add: 'route', prefix: prefix('10.1.0.0/16') },
]);
const allowed = (one: typeof file) => one.config.peers.map((peer) => peer.allowedIps);

test('the file has the allowed IPs with a route, and those on the link', () => {
  expect(allowed(file)).toEqual([['10.77.0.9/32'], ['10.77.0.2/32', '10.1.0.0/16']]);
  expect(routesOf(file)).toEqual(['10.1.0.0/16']);
  expect(file).toMatchObject({ alias: 'cpn:7', config: { mtu: 1380, address, listenPort: 51820 } });
});

test('a restart keeps what no command names, and takes peers and endpoints from the device', () => {
  const moved = { ...near, endpoint: at('198.51.100.1', 7) };
  const before = { file, device: { ...device, listenPort: 4000, peers: [moved, gate] }, addresses: [] };
  const next = applyCommands(before, [
    { add: 'route', prefix: prefix('10.2.0.0/16') },
    { remove: 'route', prefix: prefix('10.1.0.0/16'), protocol: 'boot' },
  ]);
  expect(allowed(next)).toEqual([['10.77.0.9/32'], ['10.77.0.2/32', '10.2.0.0/16']]);
  expect(next.config.peers[0]).toEqual(moved);
  expect(next).toMatchObject({ alias: 'cpn:7', config: { mtu: 1380, address, listenPort: 4000 } });
});

test('without the file, the address of the interface is used', () => {
  expect(applyCommands({ file: null, device, addresses: [address6] }, []).config).toMatchObject({
    address: address6,
    mtu: 1420,
  });
});

test('manual settings that our files cannot have are left out', () => {
  const odd = makePeer({ endpoint: at('192.0.2.1', 0), allowedIps: ['::ffff:10.0.0.0/104' as never] });
  const next = applyCommands({ file, device: { ...device, peers: [odd] }, addresses: [] }, []);
  expect(next.config.peers).toEqual([{ ...odd, endpoint: null, allowedIps: [] }]);
  expect(renderTunnelFile(next).reveal()).not.toMatch(/Endpoint|AllowedIPs/);
});

test('our mark alone needs no restart', () => {
  expect(needsRestart([{ set: 'alias', value: 'cpn:8' }])).toBe(false);
  for (const command of [{ set: 'mtu', value: 1300 }, { set: 'up' }, { add: 'address', address }] as const) {
    expect(needsRestart([command])).toBe(true);
  }
});

test('the file round-trips, contains no hook, and accepts none', () => {
  const text = renderTunnelFile(file).reveal();
  expect(parseTunnelFile(text)).toEqual(file);
  expect(text).not.toMatch(/PreUp|PostUp|PreDown|PostDown|DNS|SaveConfig|Table/i);
  expect(() => parseTunnelFile(text.replace('MTU', 'PostUp'))).toThrow('is not expected in [Interface]');
  expect(() => renderTunnelFile({ ...file, alias: 'cpn:7\nPostUp = id' })).toThrow();
  expect(() => renderTunnelFile({ ...file, alias: 'cpn:7\n[Interface]' })).toThrow();
});

test('where an address has no route to its subnet, a placeholder peer adds it, unless a peer owns the subnet', () => {
  const helped = withSubnetPeer(file, new Uint8Array(32).fill(7));
  const [added] = helped?.file.config.peers.slice(-1) ?? [];
  expect(added).toMatchObject({ publicKey: helped?.publicKey, allowedIps: ['10.77.0.0/24'], presharedKey: null });
  const relay = makePeer({ allowedIps: [prefix('10.77.0.0/24')] });
  const relayed = { ...file, config: { ...file.config, peers: [relay] } };
  expect(withSubnetPeer(relayed, new Uint8Array(32))).toBeNull();
  const alone = { ...file, config: { ...file.config, address: { ...address, length: 32 } } };
  expect(withSubnetPeer(alone, new Uint8Array(32))).toBeNull();
});
