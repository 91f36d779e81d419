import { describe, expect, it } from 'vitest';
import {
  type FactsOf,
  type Problem,
  type ProblemCode,
  problem,
  selectProblems,
  stateOf,
  summarize,
  toSentence,
  toWarnings,
} from '../../../src/core/problems/problem.ts';
import { samples } from './samples.ts';

const of = <Code extends ProblemCode>(code: Code, changes: Partial<FactsOf<Code>> = {}): Problem =>
  problem(code, { ...samples[code], ...changes } as FactsOf<Code>);
const silent = (peer: string) => of('peer-silent', { peer });
const codesOf = (problems: readonly Problem[]) => problems.map(({ code }) => code);
const remedyOf = ({ remedy }: Problem) => remedy;

describe('the problems of a network', () => {
  it.each([
    [of('drift', { differences: 2 }), '2 differences from its intended state'],
    [silent('edge-1'), 'edge-1 does not answer'],
    [of('route-missing', { reason: 'no connector' }), '192.168.50.0/24: no connector'],
    [of('route-bypassed'), '192.168.50.0/25 of 192.168.50.0/24 leads to eth0'],
    [of('lan-silent'), 'the LAN behind 192.168.50.0/24 does not answer'],
    [of('port-mismatch'), 'peers dial 203.0.113.1:51820, and cpn0 listens on 49561'],
    [of('secret-mismatch'), 'network secrets differ'],
    [of('peer-expired'), 'this host expired'],
    [of('login-expired'), 'the user of this host must log in again'],
    [of('host-unread'), 'the routes of this host cannot be read'],
  ])('degrade it, and are its reason: $code', (found, reason) => {
    expect([stateOf([found]), summarize([found])]).toEqual(['degraded', reason]);
    expect(found.remedy).not.toBeNull();
  });

  it('of a route without a connector have the remedy for its cause', () => {
    expect(remedyOf(of('route-missing', { reason: 'no connector in reach; edge-1 has no endpoint' }))).toBe(
      'give the connector an endpoint, on its host: cpn set --endpoint HOST:PORT',
    );
    expect(remedyOf(of('route-missing', { reason: 'no connector; out of service at edge-1' }))).toBe(
      'start a connector for it, or put one back into service',
    );
    expect(remedyOf(of('route-missing', { reason: null }))).toBe('cpn reconcile cpn0');
  });

  it('of two hosts with one identity keep the peer, which the other host needs', () => {
    expect(remedyOf(of('identity-cloned', { interface: 'cpn0' }))).toBe(
      'on the copy, type "cpn leave cpn0 --keep-peer", and join it with a new key',
    );
  });

  it('are none of a network that is well', () => {
    expect([stateOf([]), summarize([])]).toEqual(['up', null]);
  });

  it('of a suspended host have a remedy for an admin, and no new join', () => {
    expect(remedyOf(of('sync-refused', { refused: 'forbidden' }))).toMatch(
      /^an admin resumes this host: "cpn peer resume"/,
    );
    expect(remedyOf(of('sync-refused', { refused: 'token' }))).toBe('cpn reconcile cpn0, or join it again');
  });

  it('of a refused sync leave the state as it is', () => {
    const refused = [of('sync-refused', { refused: 'token' })];
    expect([stateOf(refused), summarize(refused)]).toEqual(['up', 'the control plane refuses the token of this host']);
  });

  it.each(['expires-soon', 'login-expires-soon', 'subnet-inside', 'key-held', 'peer-skipped'] as const)(
    'change no state as a note: %s',
    (code) => {
      expect([stateOf([of(code)]), summarize([of(code)])]).toEqual(['up', null]);
    },
  );

  it('of a route into the tunnel, and of unread packet rules, are problems only where something is lost', () => {
    const severities = [
      of('route-foreign', { problem: null }),
      of('route-foreign', { problem: 'it is a default route' }),
      of('rules-unread', { forwards: false }),
      of('rules-unread', { forwards: true }),
    ].map(({ severity }) => severity);
    expect(severities).toEqual(['note', 'problem', 'note', 'problem']);
  });

  it('after "cpn down" are those that need no interface', () => {
    const found = selectProblems([of('taken-down'), of('interface-missing'), of('route-missing'), silent('a')]);
    expect(codesOf(found)).toEqual(['taken-down']);
    expect(stateOf(found)).toBe('down');
  });

  it('of an interface that cannot come up name its port, and what has it', () => {
    const missing = selectProblems([of('interface-missing', { port: null }), of('drift')]);
    expect(missing).toMatchObject([{ code: 'interface-missing', remedy: 'cpn reconcile cpn0' }]);
    const ours = of('interface-missing', { port: 51820, holder: 'cpn1', holder_network: 'office' });
    expect(ours).toMatchObject({
      text: 'is missing: UDP port 51820 is in use by cpn1, the interface of network "office"',
      remedy:
        'choose another with "cpn set cpn0 --listen-port PORT", or release it with "cpn leave cpn1" or "cpn down cpn1"',
    });
    expect([stateOf([ours]), summarize([ours])]).toEqual(['down', 'UDP port 51820 is in use by cpn1']);
    const theirs = of('interface-missing', { port: 51820, holder: null });
    expect(theirs.remedy).toContain('stop its process (find it with "ss -lunp"');
  });

  it('of a deleted network are that it was deleted, and the wg-quick file that could not be renamed', () => {
    const found = [of('network-deleted'), of('config-left'), of('interface-missing'), of('sync-refused')];
    const selected = selectProblems(found);
    expect(codesOf(selected)).toEqual(['network-deleted', 'config-left']);
    expect(stateOf(selected)).toBe('down');
    expect(summarize(selected)).toBe('the network was deleted; /etc/wireguard/cpn0.conf is still there');
    expect(remedyOf(of('network-deleted', { resumes: true }))).toMatch(/^it comes up automatically .*"cpn leave cpn0"/);
    expect(remedyOf(of('network-deleted', { resumes: false }))).toMatch(/^"cpn up cpn0" brings it up once/);
  });

  it('of a host that cannot be read are not what follows from that', () => {
    const found = [of('host-unread'), of('interface-missing'), of('drift'), of('pin-mismatch')];
    expect(codesOf(selectProblems(found))).toEqual(['host-unread', 'pin-mismatch']);
  });

  it('are three by name in one line, and the number of the others', () => {
    const problems = ['a', 'b', 'c', 'd', 'e'].map(silent);
    expect(summarize(problems)).toBe('a does not answer; b does not answer; c does not answer; and 2 more');
  });

  it('are warnings with their remedy where no table of the status shows them', () => {
    expect(toWarnings([silent('a'), of('drained')])).toEqual([toSentence(of('drained'))]);
    expect(toSentence(of('drained'))).toBe('out of service since "cpn drain"; "cpn drain cpn0 --undo" puts it back');
    expect(toWarnings([of('route-bypassed', { is_range: true })])).toHaveLength(1);
    expect(toWarnings([of('route-bypassed', { is_range: false })])).toEqual([]);
  });

  it('carry nothing from the wire that a terminal obeys', () => {
    const { facts: _, ...words } = silent('a\u001b[2Jb');
    expect(JSON.stringify(words)).not.toContain('\\u001b');
  });
});

describe('a route', () => {
  it('of another program into the tunnel is removed by a command, unless it does no harm and is intended', () => {
    const foreign = (wrong: string | null) => of('route-foreign', { problem: wrong, command: 'ip route del x' });
    expect([foreign('it takes all'), foreign(null)].map(({ severity, remedy }) => [severity, remedy])).toEqual([
      ['problem', 'ip route del x'],
      ['note', 'ip route del x, unless this is intended'],
    ]);
  });

  it('whose LAN fails is out of service, or still in it at the control plane', () => {
    const texts = (is_withdrawn: boolean) => [
      of('lan-silent', { is_withdrawn }).text,
      of('lan-unreachable', { is_withdrawn }).text,
    ];
    expect(texts(true)).toEqual([
      expect.stringMatching(/; the route is out of service here until it does$/),
      expect.stringMatching(/; the route is out of service here until there is one$/),
    ]);
    for (const text of texts(false))
      expect(text).toMatch(/; the control plane still has the route in service here, and others send to it$/);
  });
});
