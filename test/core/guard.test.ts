import { describe, expect, it } from 'vitest';
import { type Ground, refuse, refuseInside, refuseOwn } from '../../src/core/guard.ts';
import { address, ground, network, prefix, surroundings } from './samples.ts';

const on = (changes: Partial<Ground>): Ground => ({ ...ground, ...changes });

describe('the guard', () => {
  it('lets an ordinary route pass', () => {
    expect(refuse(prefix('192.168.50.0/24'), ground)).toBeNull();
    expect(refuse(prefix('fd12::/64'), ground)).toBeNull();
  });

  it.each([
    ['0.0.0.0/0', 'default route'],
    ['::/0', 'default route'],
    ['0.0.0.0/1', 'half'],
    ['128.0.0.0/1', 'half'],
    ['8000::/1', 'half'],
    ['127.0.0.0/8', 'loopback'],
    ['127.0.0.53/32', 'loopback'],
    ['126.0.0.0/7', 'loopback'],
    ['::1/128', 'loopback'],
    ['169.254.169.254/32', 'link-local'],
    ['fe80::/64', 'link-local'],
    ['224.0.0.0/4', 'multicast'],
    ['239.1.0.0/16', 'multicast'],
    ['ff02::/16', 'multicast'],
    ['0.0.0.0/8', 'unspecified'],
    ['240.0.0.0/4', 'reserved'],
  ])('refuses %s as %s', (text, kind) => {
    expect(refuse(prefix(text), ground)).toContain(kind);
  });

  it.each(['203.0.113.0/24', '203.0.113.128/25', '203.0.112.0/20'])(
    'refuses %s, which overlaps a connected subnet',
    (text) => {
      expect(refuse(prefix(text), ground)).toBe('overlaps 203.0.113.0/24, which this host is in (eth0)');
    },
  );

  it('refuses what another network has', () => {
    const taken = [{ prefix: prefix('10.78.0.0/16'), by: 'network lab (cpn1)' }];
    expect(refuse(prefix('10.78.5.0/24'), on({ taken }))).toBe('overlaps 10.78.0.0/16 of network lab (cpn1)');
  });

  it('refuses what somebody else routes elsewhere, and lets pass what is only within it', () => {
    expect(refuse(prefix('172.31.0.0/16'), ground)).toBe('leads to eth1 on this host already');
    expect(refuse(prefix('172.31.5.0/24'), ground)).toBeNull();
  });

  it.each<[string, Partial<Ground>]>([
    ['the control plane', { api: [address('198.51.100.1')] }],
    ["a peer's endpoint", { endpoints: [address('198.51.100.1')] }],
    ['the default gateway', { surroundings: { ...surroundings, connected: [], gateways: [address('198.51.100.1')] } }],
    ['a resolver', { surroundings: { ...surroundings, resolvers: [address('198.51.100.1')] } }],
    ['an SSH client', { surroundings: { ...surroundings, resolvers: [], sshClients: [address('198.51.100.1')] } }],
  ])('refuses what covers %s', (what, changes) => {
    expect(refuse(prefix('198.51.100.0/24'), on(changes))).toBe(`covers ${what} (198.51.100.1)`);
    expect(refuse(prefix('192.0.2.0/24'), on(changes))).toBeNull();
  });

  it('lets pass exactly what a person names', () => {
    const named = on({ allowed: [prefix('203.0.113.0/24')] });
    expect(refuse(prefix('203.0.113.0/24'), named)).toBeNull();
    expect(refuse(prefix('203.0.113.0/25'), named)).not.toBeNull();
  });
});

describe('an address of this host', () => {
  it.each([
    ['127.0.0.53', /loopback/],
    ['169.254.169.254', /link-local/],
    ['0.0.0.5', /unspecified/],
    ['255.255.255.255', /reserved/],
    ['203.0.113.254', /default gateway/],
    ['198.51.100.53', /resolver/],
    ['203.0.113.9', /control plane/],
    ['203.0.113.11', /peer's endpoint/],
    ['198.51.100.7', /SSH client/],
  ])('is not %s', (own, reason) => {
    const around = on({
      surroundings: { ...surroundings, sshClients: [address('198.51.100.7')] },
      api: [address('203.0.113.9')],
      endpoints: [address('203.0.113.11')],
    });
    expect(refuseOwn(address(own), around)).toMatch(reason);
    expect(refuseOwn(address(own), { ...around, allowed: [prefix(`${own}/32`)] })).toBeNull();
  });

  it('may be one of a subnet that it is in, where another network overlaps it', () => {
    expect(refuseOwn(address('203.0.113.77'), ground)).toBeNull();
    expect(refuseOwn(address('10.77.0.5'), ground)).toBeNull();
  });
});

describe('a route within the network itself', () => {
  it.each(['10.77.0.0/24', '10.77.0.128/25', '10.77.0.2/32'])('is not %s', (text) => {
    expect(refuseInside(prefix(text), network([]))).toBe('lies within 10.77.0.0/24, the network itself');
  });

  it('is none that is wider, or elsewhere', () => {
    expect(refuseInside(prefix('10.0.0.0/8'), network([]))).toBeNull();
    expect(refuseInside(prefix('10.78.0.0/24'), network([]))).toBeNull();
  });
});
