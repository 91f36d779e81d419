import { describe, expect, it } from 'vitest';
import { findUnmet } from '../../../src/core/health/readiness.ts';
import type { Actual } from '../../../src/core/host-state/actual.ts';
import { address, bare, keyPair, prefix } from '../samples.ts';

const now = 1_800_000_000;
const expected = { link: 'cpn0', address: address('10.77.0.3') };
const link = {
  name: 'cpn0',
  mtu: 1420,
  up: true,
  alias: 'cpn:7',
  addresses: [{ address: expected.address, length: 24 }],
};
const route = { for: 'route', prefix: prefix('10.77.0.0/24') } as const;

function withHandshake(latestHandshake: number | null): Actual {
  const peer = {
    publicKey: keyPair(1).publicKey,
    presharedKey: null,
    endpoint: null,
    allowedIps: [],
    keepalive: null,
    latestHandshake,
    rxBytes: 0,
    txBytes: 0,
  };
  const device = { publicKey: keyPair(3).publicKey, listenPort: 51820, fwmark: null, peers: [peer] };
  return { ...bare, link, onLink: [route.prefix], device };
}

describe('the readiness condition', () => {
  it.each([{ for: 'address' }, { for: 'handshake' }, route] as const)('lacks the interface: %j', (condition) => {
    expect(findUnmet(condition, expected, bare, now)).toBe('the interface cpn0 is missing');
    const down = { ...withHandshake(now), link: { ...link, up: false } };
    expect(findUnmet(condition, expected, down, now)).toBe('cpn0 is down');
    expect(findUnmet(condition, expected, withHandshake(now), now)).toBeNull();
  });

  it('is an address that a program can bind to, whatever the length of its range', () => {
    const other = { ...bare, link: { ...link, addresses: [{ address: address('10.77.0.4'), length: 24 }] } };
    expect(findUnmet({ for: 'address' }, expected, other, now)).toBe('cpn0 does not have the address 10.77.0.3');
    const alone = { ...bare, link: { ...link, addresses: [{ address: expected.address, length: 32 }] } };
    expect(findUnmet({ for: 'address' }, expected, alone, now)).toBeNull();
  });

  it.each([null, now - 181])('is a handshake that still carries a session, not one of %s', (latest) => {
    expect(findUnmet({ for: 'handshake' }, expected, withHandshake(latest), now)).toBe('no peer has a fresh handshake');
  });

  it('is a route, and reports its current interface', () => {
    const elsewhere = { for: 'route', prefix: prefix('192.168.50.0/24') } as const;
    expect(findUnmet(elsewhere, expected, withHandshake(now), now)).toBe('no route to 192.168.50.0/24 leads into cpn0');
  });
});
