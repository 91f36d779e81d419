import { expect, it } from 'vitest';
import {
  checkKeptResolvers,
  checkResolvedMode,
  checkStubs,
  type ResolvedMode,
} from '../../../src/core/doctor/check-resolvers.ts';
import type { ResolverStub } from '../../../src/core/host-state/actual.ts';
import { address, bare, desireFor, network, peer, prefix, underlay } from '../samples.ts';

const [kept, other] = [address('192.168.50.53'), address('192.168.50.54')];
const stub: ResolverStub = {
  address: address('127.0.0.53'),
  isListening: true,
  program: 'systemd-resolved',
  isStated: true,
  stated: [],
  observed: [],
};
const map = network([peer(3)]);
function check(...stubs: Partial<ResolverStub>[]) {
  const desired = { ...desireFor(peer(3), map), keptOutside: [{ address: kept, what: 'a resolver' }] };
  const all = stubs.map((changes) => ({ ...stub, ...changes }));
  return checkStubs({ map, desired, actual: { ...bare, underlay: { ...underlay, stubs: all } } } as never);
}

it.each<[string, Partial<ResolverStub>, result: string, found: string, checked?: string]>([
  ['at which nothing listens', { isListening: false, stranger: 1000 }, 'note', 'nothing listens there', ''],
  ['of another user', { stranger: 1000 }, 'note', 'user 1000, not a system user, listens there', ''],
  ['without servers', {}, 'ok', 'queries no other server'],
  ['with servers', { stated: [kept, other] }, 'ok', `queries ${kept} (kept outside the tunnel), ${other}`],
  ['with the same server in settings and sockets', { stated: [other], observed: [other] }, 'ok', `queries ${other}`],
  ['whose servers are unknown', { isStated: false }, 'note', 'its servers are unknown'],
  [
    'whose settings name only some servers',
    { isStated: false, stated: [kept], observed: [other] },
    'note',
    `queries ${kept} (kept outside the tunnel), ${other}, and perhaps others`,
  ],
  ['of an unknown program', { program: null }, 'ok', 'queries', ' (its program cannot be seen)'],
  ['whose program has a control character', { program: 'dns\u001b' }, 'ok', 'queries', ' (dns\ufffd)'],
])('the finding on a stub %s', (_, changes, result, found, program = ' (systemd-resolved)') => {
  const [finding] = check(changes);
  expect(finding).toMatchObject({ verdict: result, checked: `the local resolver 127.0.0.53${program}` });
  expect(finding?.found.startsWith(found)).toBe(true);
});

it('each stub has its own finding; a host without any has none', () => {
  expect(check({}, { address: address('127.0.0.1'), isStated: false })).toHaveLength(2);
  expect(check()).toEqual([]);
});

it('a resolver that is kept outside is a problem if it does not answer there', () => {
  const route = prefix('192.168.50.0/24');
  const findings = checkKeptResolvers('cpn0', [
    { address: kept, route, answers: true },
    { address: other, route, answers: false },
  ]);
  expect(findings).toMatchObject([
    { verdict: 'ok', checked: `the resolver ${kept}, which stays outside the tunnel` },
    { verdict: 'problem', remedy: expect.stringMatching(/^cpn set cpn0 --allow-route 192\.168\.50\.0\/24/) },
  ]);
});

const bypassing: ResolvedMode = { mode: 'uplink', hasStub: true, nameservers: [other], sources: ['files', 'dns'] };

it.each<[string, Partial<ResolvedMode>, hasDomains: boolean, verdict: string, found: string]>([
  ['that is its stub', { mode: 'stub', nameservers: [address('127.0.0.53')] }, true, 'ok', 'names its stub'],
  ['by hand with its stub', { mode: 'foreign', nameservers: [other, address('127.0.0.54')] }, true, 'ok', 'names its'],
  ['that bypasses it', {}, true, 'note', `names ${other} (resolv.conf mode uplink), and nsswitch.conf has no`],
  ['that bypasses it in an old version', { mode: null }, true, 'note', `names ${other}, and nsswitch.conf has no`],
  ['that is missing', { mode: 'missing', nameservers: [] }, true, 'note', 'names no server (resolv.conf mode missing)'],
  ['that bypasses it without domains', {}, false, 'ok', `names ${other} (resolv.conf mode uplink), and nsswitch`],
  ['with nss-resolve', { sources: ['files', 'resolve'] }, true, 'ok', `names ${other} (resolv.conf mode uplink); `],
])('the finding on a resolv.conf %s', (_, changes, hasDomains, verdict, found) => {
  const finding = checkResolvedMode({ ...bypassing, ...changes }, hasDomains);
  expect(finding).toMatchObject({ verdict, found: expect.stringContaining(found) });
});

it('the remedy for a resolv.conf that bypasses systemd-resolved is its stub, if it has one', () => {
  const remedyOf = (hasStub: boolean) => checkResolvedMode({ ...bypassing, hasStub }, true).remedy;
  const link = 'ln -sf ../run/systemd/resolve/stub-resolv.conf /etc/resolv.conf';
  expect([remedyOf(true), remedyOf(false)]).toEqual([
    `${link}, or apt install libnss-resolve`,
    'apt install libnss-resolve',
  ]);
});
