import { describe, expect, it } from 'vitest';
import { type AttemptRecord, addRecord, type PathRecords } from '../../../src/core/paths/path-record.ts';
import { desireFor } from '../samples.ts';
import { check, connector, explain, into, laptop, now, office, self, viewOf } from './samples.ts';

const map = { ...office, relay: connector.id };
const at = (seconds: number) => new Date((now - seconds) * 1000).toISOString();
const attempt: AttemptRecord = {
  at: at(60),
  outcome: 'failed',
  tried: [
    { endpoint: '192.168.2.9:51820', outcome: 'no-answer' },
    { endpoint: '203.0.113.9:4711', outcome: 'handshake' },
  ],
  nats: { own: 'port-kept', peer: 'symmetric' },
  observed: ['203.0.113.1:51820'],
};

function pathOf(records: PathRecords, paths: number[] = [], to = laptop.address): string | undefined {
  const view = viewOf(map);
  const desired = desireFor(self, map, { paths });
  return check(explain(to, { ...view, desired, paths: records }, into('10.77.0.0/24')), 'path')?.detail;
}

describe('the check of a path', () => {
  it('has the candidates of the latest attempt, their outcomes, and the NATs of both', () => {
    expect(pathOf(addRecord({}, 4, { attempt }))).toBe(
      'relayed; attempt 60 s ago, no path was found: 192.168.2.9:51820 no answer, ' +
        '203.0.113.9:4711 a handshake, but no answer to probes; this host: a NAT that keeps the port; ' +
        'laptop: a symmetric NAT, with another port for each destination; ' +
        'UDP passes: large packets may not, or a firewall of a host drops echoes from the tunnel, ICMPv6 in fe80::/64 or ICMP',
    );
  });

  it('has the time of the latest switch, unless it was to the other path', () => {
    const direct = addRecord({}, 4, { switched: { to: 'direct', at: at(300), why: null } });
    expect(pathOf(direct, [4])).toBe('direct for 5 min; no attempt at a direct path yet');
    expect(pathOf(direct)).toBe('relayed; no attempt at a direct path yet');
  });

  it.each([
    ['lost', 'the direct path stopped answering'],
    [null, 'laptop left the direct path'],
  ] as const)('has the end of the path before: %s', (why, text) => {
    const relayed = addRecord({}, 4, { switched: { to: 'relayed', at: at(300), why } });
    expect(pathOf(relayed)).toBe(`relayed for 5 min, as ${text}; no attempt at a direct path yet`);
  });

  it('states that direct paths are off, of peers that may have one', () => {
    const view = viewOf(map, { directPaths: false });
    const detailTo = (to: string) => check(explain(to, view, into('10.77.0.0/24')), 'path')?.detail;
    expect(detailTo(laptop.address)).toMatch(/^relayed: direct paths are off .*cpn set --direct-paths/);
    expect(detailTo(connector.address)).toBeUndefined();
  });

  it('names other reasons where both NATs allow a path', () => {
    const nats = { own: 'port-kept', peer: 'port-changed' } as const;
    const tried = attempt.tried.slice(0, 1);
    expect(pathOf(addRecord({}, 4, { attempt: { ...attempt, tried, nats } }))).toMatch(
      /; these NATs allow a path: look for /,
    );
  });

  it('states that direct paths are off on the peer', () => {
    const declined = { ...attempt, outcome: 'declined', tried: [] } as const;
    expect(pathOf(addRecord({}, 4, { attempt: declined }))).toBe(
      'relayed; attempt 60 s ago: direct paths are off on laptop',
    );
  });

  it('states that the NATs of both leave no path', () => {
    const blocked = { ...attempt, outcome: 'blocked', tried: [] } as const;
    expect(pathOf(addRecord({}, 4, { attempt: blocked }))).toMatch(
      /^relayed; no direct path is possible between these NATs; this host: /,
    );
  });

  it('states that no connector observes both hosts, or not for long enough', () => {
    const unknown = { ...attempt, outcome: 'no-endpoints', tried: [] } as const;
    expect(pathOf(addRecord({}, 4, { attempt: unknown }))).toMatch(
      /^relayed; attempt 60 s ago: no connector .* observes both hosts, or not for long enough yet/,
    );
  });

  it('is left out for a peer with an endpoint, and without direct paths', () => {
    expect(pathOf({}, [], connector.address)).toBeUndefined();
    expect(check(explain(laptop.address, viewOf(map), into('10.77.0.0/24')), 'path')).toBeUndefined();
  });
});
