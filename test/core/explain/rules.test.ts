import { describe, expect, it } from 'vitest';
import { checkRules, type ExplainedFlow } from '../../../src/core/explain/check-rules.ts';
import type { AccessRules, Rule } from '../../../src/core/map/access-rules.ts';
import { address, desireFor, dialled, network, peer, prefix } from '../samples.ts';
import { viewOf } from './samples.ts';

const lan = prefix('192.168.50.0/24');
const self = peer(3, { tags: ['ops'] });
const peers = [
  peer(1, { type: 'connector', name: 'edge-1', endpoint: dialled(11), enforcesRules: true }),
  self,
  peer(4, { name: 'db', endpoint: dialled(4), enforcesRules: true }),
  peer(5, { name: 'old', endpoint: dialled(5) }),
  peer(6, { name: 'phone', via: { connector: 1 } }),
];
const rule = (name: string, changes: Partial<Rule>): Rule => ({
  ...{ name, from: [{ kind: 'tag', tag: 'ops' }], to: [{ kind: 'any' }], protocol: 'tcp', ports: [] },
  ...changes,
});
const web = rule('web', {
  ports: [
    { first: 80, last: 80 },
    { first: 8000, last: 8080 },
  ],
});
const files = rule('files', { to: [{ kind: 'route', prefix: lan }], protocol: 'any' });

function check(to: string, flow: ExplainedFlow | null, rules: AccessRules | null) {
  const map = network(peers, { routes: [lan], ...(rules && { rules }) });
  const forwarding = { sysctls: {}, receipt: [], others: [], hasNft: true };
  const view = viewOf(map, { desired: desireFor(self, map, { forwarding }) }, {}, {}, self);
  return checkRules(address(to), view, flow);
}
const closed = (rules: readonly Rule[], requiresEnforcement = false) => ({ rules, requiresEnforcement });
const tcp = (port: number): ExplainedFlow => ({ protocol: 'tcp', port });

describe('the rules in an explanation', () => {
  it('are left out for an open network', () => {
    expect(check('10.77.0.4', tcp(80), null)).toEqual([]);
  });

  it.each<[string, ExplainedFlow | null, string]>([
    ['10.77.0.4', tcp(8001), 'rule "web" allows tcp 8001; decided at this host and db'],
    [
      '10.77.0.5',
      tcp(80),
      'rule "web" allows tcp 80; decided at this host and old, which states no enforcement of rules',
    ],
    ['10.77.0.6', tcp(80), 'rule "web" allows tcp 80; decided at this host and edge-1'],
    ['192.168.50.7', { protocol: 'udp', port: 53 }, 'rule "files" allows udp 53; decided at this host and edge-1'],
    ['10.77.0.4', { protocol: 'icmp', port: null }, 'icmp is never filtered; decided at this host and db'],
    [
      '192.168.50.7',
      null,
      'rule "web" allows tcp 80, 8000-8080; rule "files" allows everything; decided at this host and edge-1',
    ],
  ])('to %s, %o: %s', (to, flow, detail) => {
    expect(check(to, flow, closed([web, files]))).toEqual([{ check: 'rules', ok: true, detail, remedy: null }]);
  });

  it.each<[ExplainedFlow | null]>([[null], [{ protocol: 'tcp', port: null }]])(
    'depend on the port where they allow some ports alone and %o names none',
    (flow) => {
      expect(check('10.77.0.4', flow, closed([web]))).toEqual([
        {
          ...{ check: 'rules', ok: null, detail: 'rule "web" allows tcp 80, 8000-8080; decided at this host and db' },
          remedy: 'it depends on the port; name it: cpn explain 10.77.0.4 --port PORT',
        },
      ]);
    },
  );

  it('allow nothing where they are too many for this host', () => {
    const ports = Array.from({ length: 2 ** 18 }, (_, at) => ({ first: at % 65_536, last: at % 65_536 }));
    expect(check('10.77.0.4', tcp(80), closed([rule('web', { ports }), files, rule('all', { ports })]))).toEqual([
      {
        ...{ check: 'rules', ok: false },
        detail: 'the rules select more pairs than this host can apply, so that it allows nothing',
        remedy: 'an owner or admin can use fewer ports or tags: cpn rules edit 7',
      },
    ]);
  });

  it('of another protocol allow nothing', () => {
    const udp: ExplainedFlow = { protocol: 'udp', port: null };
    expect(check('10.77.0.4', udp, closed([web]))).toMatchObject([{ ok: false }]);
    const all = closed([rule('all', { protocol: 'udp', ports: [] })]);
    expect(check('10.77.0.4', udp, all)).toMatchObject([{ ok: true }]);
    expect(check('10.77.0.4', null, all)).toMatchObject([{ ok: null }]);
  });

  it.each<[string, ExplainedFlow | null, readonly Rule[], boolean, string]>([
    ['10.77.0.4', tcp(22), [web], false, 'no rule of the closed network allows tcp 22; decided at this host and db'],
    [
      '10.77.0.4',
      null,
      [],
      false,
      'network office is closed, and no rule allows this host to reach it; decided at this host and db',
    ],
    [
      '10.77.0.5',
      tcp(80),
      [web],
      true,
      'its host does not enforce rules, and the network requires that; decided at this host and old, which states no enforcement of rules',
    ],
  ])('stop a packet to %s, %o with %j, enforcement required: %s', (to, flow, rules, required, detail) => {
    const remedy = 'an owner or admin can allow it: cpn rules edit 7';
    expect(check(to, flow, closed(rules, required))).toEqual([{ check: 'rules', ok: false, detail, remedy }]);
  });
});
