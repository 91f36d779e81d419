import { describe, expect, it } from 'vitest';
import { checkAnswers } from '../../../src/core/doctor/check-answers.ts';
import { checkFile } from '../../../src/core/doctor/check-files.ts';
import { checkManagers } from '../../../src/core/doctor/check-host.ts';
import { checkOuterEchoes, checkTunnelEchoes } from '../../../src/core/doctor/check-mtu.ts';
import { makeRule } from '../../../src/core/host-state/policy-rule.ts';
import { bare, desireFor, dialled, network, peer, prefix, usualConstraints } from '../samples.ts';

describe('the permissions of a file', () => {
  const modes = Array.from({ length: 0o2000 }, (_, mode) => mode);
  const problems = (kind: 'file' | 'folder', isSecret: boolean) =>
    modes.filter((mode) => checkFile({ path: '/f', kind, isSecret }, { kind, mode, uid: 0 }, 0)?.verdict === 'problem');

  it('let no other user write, of the group or not, but for a folder with the sticky bit', () => {
    expect(problems('file', false)).toEqual(modes.filter((mode) => (mode & 0o022) !== 0));
    expect(problems('folder', true)).toEqual(modes.filter((mode) => (mode & 0o022) !== 0 && (mode & 0o1000) === 0));
  });

  it('let no other user read, write or run a secret', () => {
    expect(problems('file', true)).toEqual(modes.filter((mode) => (mode & 0o077) !== 0));
  });

  it.each([
    [0, 0, 'ok'],
    [0, 1000, 'ok'],
    [1000, 1000, 'ok'],
    [1000, 0, 'problem'],
    [1001, 1000, 'problem'],
  ])('are those of root or of this user: owned by %d, read by %d', (uid, user, verdict) => {
    const facts = { kind: 'file', mode: 0o600, uid } as const;
    expect(checkFile({ path: '/f', kind: 'file', isSecret: true }, facts, user)?.verdict).toBe(verdict);
  });
});

describe('packets of the full size', () => {
  const echoes = (passed: number | null) => ({ target: 'dc', full: 1420, passed });

  it.each<[number | null, string, string | null]>([
    [1420, 'ok', null],
    [1419, 'problem', 'cpn set cpn0 --mtu 1419, on both ends'],
    [500, 'problem', 'cpn set cpn0 --mtu 576, on both ends'],
    [null, 'note', null],
  ])(
    'pass the tunnel, or the largest that does is the MTU, within what --mtu accepts: %s',
    (passed, verdict, remedy) => {
      expect(checkTunnelEchoes(echoes(passed), 'cpn0', false)).toMatchObject({ verdict, remedy });
    },
  );

  it('that vanish are left to the daemon, but below what it sets itself', () => {
    const remedyFor = (passed: number) => checkTunnelEchoes(echoes(passed), 'cpn0', true).remedy;
    expect([1300, 1200, 1199].map((passed) => remedyFor(passed)?.startsWith('"cpn run" lowers'))).toEqual([
      true,
      true,
      false,
    ]);
  });

  it.each<[number | null, string, string | null]>([
    [1420, 'ok', null],
    [1419, 'note', 'cpn set cpn0 --mtu 1359 if the tunnel is slow'],
    [600, 'note', 'cpn set cpn0 --mtu 576 if the tunnel is slow'],
    [null, 'note', null],
  ])('pass outside whole, or the tunnel has room for its own headers: %s', (passed, verdict, remedy) => {
    expect(checkOuterEchoes(echoes(passed), 'cpn0')).toMatchObject({ verdict, remedy });
  });
});

it('a program that is configured to leave our interfaces alone is known by its whole name', () => {
  const verdicts = (name: string) => checkManagers([name], ['systemd-networkd']).map(({ verdict }) => verdict);
  expect(verdicts('systemd-networkd (pid 7)')).toEqual(['ok']);
  expect(verdicts('systemd-networkd-x (pid 7)')).toEqual(['note']);
});

it('rules of our own that choose by a mark take nothing from the tunnel', () => {
  const exit = prefix('0.0.0.0/0');
  const connector = peer(1, { type: 'connector', endpoint: dialled(1) });
  const map = network([connector, peer(3)], { routes: [exit] });
  const full = desireFor(peer(3), map, {}, { ...usualConstraints, allowed: [exit] });
  const late = makeRule(40_000, { fwmark: 1, table: '101' });
  const verdicts = (protocol: string) =>
    checkAnswers([], full, { ...bare, rules: [{ ...late, protocol }] }).map(({ verdict }) => verdict);
  expect([verdicts('157'), verdicts('static')]).toEqual([['ok'], ['ok', 'note']]);
});
