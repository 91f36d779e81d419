import { expect, it } from 'vitest';
import { describeChange, describeWithLines } from '../../../src/cli/output/change-text.ts';
import type { Change } from '../../../src/core/reconcile/change.ts';

const key = 'AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfG=';
const names = new Map([[key, 'edge-1']]);

function change(fields: Partial<Change>): Change {
  return { action: 'update', kind: 'hosts', target: 'cpn0', before: null, after: null, reason: 'x', ...fields };
}

it('a change is one line: what, from what to what, why', () => {
  const forwarding = { kind: 'sysctl', target: 'net.ipv4.ip_forward', before: '0', after: '1' } as const;
  expect(describeChange(change(forwarding))).toBe('  ~ sysctl net.ipv4.ip_forward  0 → 1  (x)');
});

it('a peer is named before its key', () => {
  const peer = change({ action: 'remove', kind: 'peer', target: key, before: { endpoint: null } });
  expect(describeChange(peer, names)).toBe(`  - peer edge-1 ${key}  (x)`);
  expect(describeChange(peer)).toBe(`  - peer ${key}  (x)`);
});

it('a wg-quick file shows the lines that differ, by peer', () => {
  const file = change({ kind: 'file', target: '/etc/cpn/cpn0.conf', before: 'wg-quick', after: 'wg-quick' });
  const fileDiff = [
    { peer: null, removed: ['MTU = 1420'], added: ['MTU = 1380'] },
    { peer: key, removed: [], added: ['PersistentKeepalive = 25'] },
  ];
  expect(describeWithLines(file, { names, fileDiff }).split('\n')).toEqual([
    '  ~ file /etc/cpn/cpn0.conf  (x)',
    '      [Interface]',
    '      - MTU = 1420',
    '      + MTU = 1380',
    '      [Peer] edge-1',
    '      + PersistentKeepalive = 25',
  ]);
});

it('a hosts file shows its first lines, and how many more there are', () => {
  const after = [...Array(20).keys()].map((at) => `10.77.0.${at} peer-${at}`);
  const lines = describeWithLines(change({ before: ['10.77.0.1 old'], after }), { names, fileDiff: [] }).split('\n');
  expect(lines.slice(0, 3)).toEqual(['  ~ hosts cpn0  (x)', '      - 10.77.0.1 old', '      + 10.77.0.0 peer-0']);
  expect(lines.slice(-1)).toEqual(['      and 9 more lines']);
});

it('packet rules show the names of those that differ, each once, without tables, chains and hashes', () => {
  const before = [
    'forward cpn refuse-rest 1a2b3c',
    'forward cpn clamp-mss 111111',
    'postrouting cpn masquerade 222222',
    'arriving cpn direct-paths 555555',
    'departing cpn direct-paths 666666',
  ];
  const after = ['forward cpn refuse-rest 1a2b3c', 'forward cpn clamp-mss 333333', 'forward cpn accept-inward 444444'];
  const rules = change({ kind: 'firewall', target: 'inet cpn_cpn0', before, after });
  expect(describeWithLines(rules, { names, fileDiff: [] }).split('\n')).toEqual([
    '  ~ firewall cpn0  (x)',
    '      - masquerade',
    '      - direct paths',
    '      ~ clamp mss',
    '      + accept inward',
  ]);
});
