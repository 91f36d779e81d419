import type { NetworkInterfaceInfo } from 'node:os';
import { expect, test } from 'vitest';
import type { HostEvent } from '../../../src/host/host.ts';
import { applyCommands } from '../../../src/host/wg-quick/apply-commands.ts';
import { watchLinks } from '../../../src/host/wg-quick/portable-host.ts';
import { readUnderlay } from '../../../src/host/wg-quick/underlay.ts';
import { prefix } from '../../core/samples.ts';
import { makePeer, newKeyPair } from '../samples.ts';
import { address } from '../steps.ts';

function card(cidr: string, internal = false): NetworkInterfaceInfo {
  const [own = ''] = cidr.split('/');
  const common = { address: own, netmask: '', mac: '', internal, cidr };
  return cidr.includes(':') ? { ...common, family: 'IPv6', scopeid: 0 } : { ...common, family: 'IPv4' };
}

const cards = {
  lo0: [card('127.0.0.1/8', true)],
  en0: [card('192.0.2.10/24'), card('fe80::1/64'), card('2001:db8::10/64')],
  utun4: [card('10.77.0.5/24')],
  utun5: [card('10.78.0.5/24')],
};

test('the underlay has other interfaces and our other tunnels, but not the tunnel itself', () => {
  const device = {
    ...newKeyPair(),
    listenPort: null,
    fwmark: null,
    peers: [makePeer({ allowedIps: [prefix('10.9.0.0/16')] })],
  };
  const other = applyCommands({ file: null, device, addresses: [address] }, [
    { add: 'route', prefix: prefix('10.9.0.0/16') },
  ]);
  const seen = readUnderlay('utun4', cards, new Map([['utun5', other]]));
  expect(seen).toMatchObject({
    addresses: ['192.0.2.10', '2001:db8::10'],
    connected: [
      { prefix: '192.0.2.0/24', link: 'en0' },
      { prefix: '2001:db8::/64', link: 'en0' },
      { prefix: '10.78.0.0/24', link: 'utun5' },
    ],
    routed: [{ prefix: '10.9.0.0/16', link: 'utun5' }],
    gateways: [],
    underlayMtu: null,
  });
});

test('each added, removed and changed interface is reported once, and nothing after the end', async () => {
  const looks = [
    cards,
    cards,
    { ...cards, utun4: [card('10.77.0.6/24')] },
    { lo0: cards.lo0, en1: [card('192.0.2.11/24')] },
  ];
  const events: HostEvent[] = [];
  const seen = Promise.withResolvers<void>();
  const look = () => {
    const next = looks.shift();
    if (next === undefined) seen.resolve();
    return next ?? { lo0: cards.lo0, en1: [card('192.0.2.11/24')] };
  };
  const watch = await watchLinks((event) => events.push(event), 1, look);
  await seen.promise;
  await watch.close();
  expect(events).toEqual([
    { kind: 'address', link: 'utun4', removed: false },
    { kind: 'link', link: 'en0', removed: true },
    { kind: 'link', link: 'utun4', removed: true },
    { kind: 'link', link: 'utun5', removed: true },
    { kind: 'link', link: 'en1', removed: false },
  ]);
});
