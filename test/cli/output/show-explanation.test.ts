import { describe, expect, it } from 'vitest';
import type { Explanation } from '../../../src/app/inspect/explain.ts';
import { explanationToJson, explanationToText } from '../../../src/cli/output/show-explanation.ts';
import { findStop, inconclusive, passes, stops } from '../../../src/core/explain/check.ts';
import { address } from '../../core/samples.ts';

const checks = [
  passes('network', 'behind 192.168.50.0/24'),
  inconclusive('firewall', 'not looked at'),
  stops('route', 'leaves by eth0\u001b[2J', 'take away the route'),
  stops('handshake', 'there was never one', 'look at the peer'),
];
const explanation: Explanation = {
  address: address('192.168.50.9'),
  origin: 'the address that the resolver gives for nas',
  name: 'nas',
  dns: { domain: 'corp.example', link: 'cpn0', servers: [address('192.168.50.53')] },
  network: { id: 7, name: 'office' },
  interface: 'cpn0',
  checks,
  stop: findStop(checks),
};

describe('an explanation', () => {
  it('is a line a check, then where it stops first and what to do next', () => {
    expect(explanationToText(explanation)).toBe(
      [
        '192.168.50.9  network office (7) on cpn0  the address that the resolver gives for nas',
        '    check',
        'ok  network    behind 192.168.50.0/24',
        '?   firewall   not looked at',
        'no  route      leaves by eth0\u{fffd}[2J',
        'no  handshake  there was never one',
        'dropped at route: take away the route',
      ].join('\n'),
    );
  });

  it('says what is not known where nothing stops it', () => {
    const open = { ...explanation, checks: checks.slice(0, 2), stop: null };
    const last = explanationToText(open).split('\n').at(-1);
    expect(last).toBe('nothing blocks a packet to 192.168.50.9; unknown: firewall');
  });

  it('says that an address is outside every network, which is not unknown', () => {
    const outside = { ...explanation, network: null, interface: null, origin: null, stop: null };
    const network = inconclusive('network', 'outside every network of this host: cpn does not route it');
    const lines = explanationToText({ ...outside, checks: [network] }).split('\n');
    const end = 'nothing blocks a packet to 192.168.50.9, which is outside every network of this host';
    expect([lines[0], lines.at(-1)]).toEqual(['192.168.50.9', end]);
    const both = explanationToText({ ...outside, checks: [network, ...checks.slice(1, 2)] });
    expect(both.split('\n').at(-1)).toBe(`${end}; unknown: firewall`);
  });

  it('says what keeps the way from being known', () => {
    const refused = [
      inconclusive('network', 'by the last known map', 'reading network 7 was refused'),
      ...checks.slice(1, 2),
    ];
    const open = { ...explanation, checks: refused, stop: null };
    expect(explanationToText(open).split('\n').at(-1)).toBe('unknown at network: reading network 7 was refused');
    expect(explanationToJson(open)).toMatchObject({
      checks: [{ ok: null, detail: 'by the last known map; reading network 7 was refused' }, {}],
      stops_at: null,
    });
  });

  it('of a name without an address begins with the name', () => {
    const stop = stops('name', 'has no address', 'check the spelling');
    const nameless = { ...explanation, address: null, origin: null, network: null, checks: [stop], stop };
    const lines = explanationToText({ ...nameless, dns: null }).split('\n');
    expect([lines[0], lines.at(-1)]).toEqual(['nas', 'stopped at name: check the spelling']);
    expect(explanationToJson({ ...nameless, dns: null })).toMatchObject({ address: null, name: 'nas', dns: null });
  });

  it('is the same as JSON', () => {
    expect(explanationToJson(explanation)).toEqual({
      address: '192.168.50.9',
      name: 'nas',
      dns: { domain: 'corp.example', interface: 'cpn0', servers: ['192.168.50.53'] },
      network: { id: 7, name: 'office' },
      interface: 'cpn0',
      checks: [
        { check: 'network', ok: true, detail: 'behind 192.168.50.0/24' },
        { check: 'firewall', ok: null, detail: 'not looked at' },
        { check: 'route', ok: false, detail: 'leaves by eth0\u001b[2J; take away the route' },
        { check: 'handshake', ok: false, detail: 'there was never one; look at the peer' },
      ],
      stops_at: 'route',
    });
  });
});
