import { describe, expect, it } from 'vitest';
import { findProblems, type NetworkFacts } from '../../../src/core/problems/find-problems.ts';
import { stateOf, summarize } from '../../../src/core/problems/problem.ts';
import { address, dialled, prefix } from '../samples.ts';

const well: NetworkFacts = {
  ...{ link: 'cpn0', enabled: true, deletedAt: null, leftConfig: null, hasInterface: true, portConflict: null },
  ...{ unlisted: null, drift: 0, portMismatch: null, clone: null, mapAge: null, ending: null },
  ...{
    secretMismatches: [],
    pinMismatches: [],
    hiddenPeers: [],
    silentPeers: [],
    missingRoutes: [],
    foreignRoutes: [],
    refused: null,
  },
  ...{ bypassed: new Map(), subnetInside: null, keptFor: [], silentLans: [], unreachableLans: [] },
  outside: { entries: [], omitted: 0 },
};
const silent = (name: string) => ({ name, address: address('10.77.0.2') });
const lan = prefix('192.168.50.0/24');
const part = prefix('192.168.50.0/25');

describe('the problems of a network', () => {
  it.each([
    ['drift', { drift: 2 }, '2 differences from its intended state'],
    ['a peer that fell silent', { silentPeers: [silent('edge-1')] }, 'edge-1 does not answer'],
    [
      'a route without a connector',
      { missingRoutes: [{ prefix: lan, reason: 'no connector' }] },
      `${lan}: no connector`,
    ],
    [
      'a more specific route of another program',
      { bypassed: new Map([[lan, { prefix: part, link: 'eth0' }]]) },
      `${part} of ${lan} leads to eth0`,
    ],
    ['a LAN that does not answer', { silentLans: [lan] }, `the LAN behind ${lan} does not answer`],
    [
      'an endpoint with another port',
      { portMismatch: { endpoint: dialled(1), bound: 49561 } },
      'peers dial 203.0.113.1:51820, and cpn0 listens on 49561',
    ],
    [
      'a network secret that a peer lacks',
      { secretMismatches: [{ detail: 'edge-1 has no network secret' }] },
      'network secrets differ',
    ],
    [
      'a host that expired',
      { ending: { isOver: true, found: 'this host expired', remedy: 'an admin sets a later end' } },
      'this host expired',
    ],
    ['a host whose routes cannot be read', { unread: 'ip failed' }, 'the routes of this host cannot be read'],
  ] satisfies [string, Partial<NetworkFacts>, string][])('%s degrades it, and is its reason', (_, facts, reason) => {
    const problems = findProblems({ ...well, ...facts });
    expect([stateOf(problems), summarize(problems)]).toEqual(['degraded', reason]);
    expect(problems.every(({ remedy }) => remedy !== null)).toBe(true);
  });

  it('of a route without a connector have the remedy for its cause', () => {
    const remedyOf = (reason: string | null) =>
      findProblems({ ...well, missingRoutes: [{ prefix: lan, reason }] }).map(({ remedy }) => remedy);
    expect(remedyOf('no connector in reach; edge-1 has no endpoint')).toEqual([
      'give the connector an endpoint, on its host: cpn set --endpoint HOST:PORT',
    ]);
    expect(remedyOf('no connector; out of service at edge-1')).toEqual([
      'start a connector for it, or put one back into service',
    ]);
    expect(remedyOf(null)).toEqual(['cpn reconcile cpn0']);
  });

  it('are none of a network that is well', () => {
    expect(findProblems(well)).toEqual([]);
    expect([stateOf([]), summarize([])]).toEqual(['up', null]);
  });

  it('are none of a host that expires in some days', () => {
    const ending = { isOver: false, found: 'this host expires in 3 days', remedy: 'an admin sets a later end' };
    expect(findProblems({ ...well, ending })).toEqual([]);
  });

  it('of a suspended host have a remedy for an admin, and no new join', () => {
    const remedyOf = (refused: NetworkFacts['refused']) => findProblems({ ...well, refused })[0]?.remedy;
    expect(remedyOf('forbidden')).toMatch(/^an admin resumes this host: "cpn peer resume"/);
    expect(remedyOf('token')).toBe('cpn reconcile cpn0, or join it again');
  });

  it('of a subnet of this host within the range are a note, which changes no state', () => {
    const problems = findProblems({ ...well, subnetInside: { prefix: prefix('10.77.0.128/25'), link: 'wlan0' } });
    expect(problems).toMatchObject([{ code: 'subnet-inside', severity: 'note' }]);
    expect([stateOf(problems), summarize(problems)]).toEqual(['up', null]);
  });

  it('of a key that devices keep from rotation are a note', () => {
    const problems = findProblems({ ...well, keptFor: ['phone', 'tab\u001b[2Jlet'] });
    expect(problems).toMatchObject([
      { code: 'key-held', severity: 'note', summary: 'its key is not rotated: 2 devices have it' },
    ]);
    expect(problems[0]?.text).toContain(': phone, tab');
    expect(problems[0]?.text).not.toContain('\u001b');
    expect(stateOf(problems)).toBe('up');
  });

  it('after "cpn down" are only that it was taken down', () => {
    const down = { ...well, enabled: false, hasInterface: false };
    const problems = findProblems({
      ...down,
      missingRoutes: [{ prefix: lan, reason: null }],
      silentPeers: [silent('a')],
    });
    expect(problems).toMatchObject([{ code: 'taken-down', remedy: 'cpn up cpn0' }]);
    expect(stateOf(problems)).toBe('down');
  });

  it('of an interface that cannot come up name its port, and what has it', () => {
    const missing = { ...well, hasInterface: false, drift: 4 };
    expect(findProblems(missing)).toMatchObject([{ code: 'interface-missing', remedy: 'cpn reconcile cpn0' }]);
    const holder = { link: 'cpn1', network: 'office' };
    const ours = findProblems({ ...missing, portConflict: { port: 51820, holder } });
    expect(ours).toMatchObject([
      {
        code: 'interface-missing',
        text: 'is not there: UDP port 51820 is in use by cpn1, the interface of network "office"',
        remedy: 'cpn leave cpn1, cpn down cpn1, or cpn set cpn0 --listen-port PORT',
      },
    ]);
    expect([stateOf(ours), summarize(ours)]).toEqual(['down', 'UDP port 51820 is in use by cpn1']);
    const theirs = findProblems({ ...missing, portConflict: { port: 51820, holder: null } });
    expect(theirs).toMatchObject([{ remedy: expect.stringContaining('ss -lunp sport = :51820') }]);
  });

  it('of a deleted network are only that it was deleted', () => {
    const gone = { ...well, enabled: false, hasInterface: false, deletedAt: '2030-01-01T00:00:00.000Z' };
    const problems = findProblems({ ...gone, refused: 'gone' });
    expect(problems).toMatchObject([{ code: 'network-deleted', remedy: expect.stringContaining('cpn leave cpn0') }]);
    expect(stateOf(problems)).toBe('down');
  });

  it('of a deleted network name the wg-quick file that could not be renamed', () => {
    const gone = { ...well, enabled: false, hasInterface: false, deletedAt: '2030-01-01T00:00:00.000Z' };
    const problems = findProblems({ ...gone, leftConfig: '/etc/wireguard/cpn0.conf' });
    expect(problems.map(({ code, remedy }) => [code, remedy])).toEqual([
      ['network-deleted', expect.stringContaining('cpn leave cpn0')],
      ['config-left', 'make /etc/wireguard/cpn0.conf and its folder writable; the next pass renames the file'],
    ]);
    expect(stateOf(problems)).toBe('down');
    expect(summarize(problems)).toBe('the network was deleted; /etc/wireguard/cpn0.conf is still there');
  });

  it('of a refused sync leave the state as it is', () => {
    const problems = findProblems({ ...well, refused: 'token' });
    expect([stateOf(problems), summarize(problems)]).toEqual([
      'up',
      'the control plane refuses the token of this host',
    ]);
  });

  it('are three by name in one line, and the number of the others', () => {
    const problems = findProblems({ ...well, silentPeers: ['a', 'b', 'c', 'd', 'e'].map(silent) });
    expect(summarize(problems)).toBe('a does not answer; b does not answer; c does not answer; and 2 more');
  });

  it('carry nothing from the wire that a terminal obeys', () => {
    const [problem] = findProblems({ ...well, silentPeers: [silent('a\u001b[2Jb')] });
    expect(JSON.stringify(problem)).not.toContain('\\u001b');
  });
});
