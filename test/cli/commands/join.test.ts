import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import * as membership from '../../../src/app/join/check-membership.ts';
import * as joining from '../../../src/app/join/join.ts';
import { join } from '../../../src/cli/commands/join.ts';
import * as daemonUnit from '../../../src/cli/daemon/daemon-unit.ts';
import * as passwords from '../../../src/cli/input/password.ts';
import { CommandFailed } from '../../../src/core/errors/index.ts';
import { joinedTo, mapAt } from '../../app/joined-state.ts';
import { peer } from '../../core/samples.ts';
import { runCommand } from './run-command.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(joinPath(tmpdir(), 'cpn-join-'));
});
afterEach(async () => {
  vi.restoreAllMocks();
  await rm(folder, { recursive: true });
});

const key = `cpn_${'k'.repeat(43)}`;
const state = joinedTo(mapAt('"1"', [peer(2)]));
const report: joining.JoinReport = {
  ...{ state, handshake: true, answered: null, secretMismatches: [], unloaded: null, savedProxy: null },
};

interface Scene {
  readonly environment?: Record<string, string>;
  readonly report?: Partial<joining.JoinReport>;
  /** Whether this host has joined through that control plane. */
  readonly isJoined?: boolean;
  /** What a user types at a prompt; null without a terminal. */
  readonly typed?: string | null;
}

async function run(given: object, scene: Scene = {}) {
  vi.restoreAllMocks();
  const { environment = {}, isJoined = false, typed = null } = scene;
  vi.spyOn(membership, 'findJoined').mockResolvedValue(isJoined ? state : null);
  vi.spyOn(passwords, 'hasTerminal').mockReturnValue(typed !== null);
  const asked = vi.spyOn(passwords, 'askSecret').mockResolvedValue(typed ?? '');
  const joined = vi.spyOn(joining, 'joinNetwork').mockResolvedValue({ ...report, ...scene.report });
  const enabled = vi.spyOn(daemonUnit, 'enableDaemon').mockResolvedValue(true);
  const outcome = await runCommand(join, { api: 'https://cp.example.net', ...given }, { tools: {}, environment });
  const [request] = joined.mock.calls.map(([, each]) => each);
  return { ...outcome, request, enabled: enabled.mock.calls.length, prompts: asked.mock.calls.length };
}

/** A file of a join with these lines. */
async function fileOf(...lines: string[]) {
  const path = joinPath(folder, 'join.conf');
  await writeFile(path, ['api = https://cp.example.net', ...lines, ''].join('\n'));
  return path;
}

describe('cpn join', () => {
  it('has the default of each flag that was left out, and names those that were given', async () => {
    const { exitCode, request, enabled } = await run({ key });
    expect([exitCode, enabled]).toEqual([0, 1]);
    expect(request).toMatchObject({
      ...{ type: 'origin', endpoint: null, interface: null, personalToken: null, networkSecret: null },
      ...{ isUnattended: false, handshakeTimeoutMs: null },
    });
    expect(request?.named).toEqual(new Set());
    const all = { name: 'web', type: 'connector', endpoint: 'auto', mtu: '1380', 'ca-file': 'none', proxy: 'none' };
    const given = await run({ key, ...all, interface: 'wg7', wait: '20' });
    expect(given.request).toMatchObject({ name: 'web', type: 'connector', endpoint: 'auto', interface: 'wg7' });
    expect(given.request?.handshakeTimeoutMs).toBe(20_000);
    expect(given.request?.named).toEqual(new Set(['name', 'type', 'endpoint', 'mtu', 'authorities', 'proxy']));
    expect((await run({ key, endpoint: '203.0.113.1:51820' })).request?.endpoint).toMatchObject({ port: 51_820 });
  });

  it('does not wait for a handshake with --wait 0', async () => {
    expect((await run({ key, wait: '0' })).request?.handshakeTimeoutMs).toBe(0);
  });

  it('reaches its control plane through the proxy of the environment, and else directly', async () => {
    const environment = { HTTPS_PROXY: 'http://proxy.example.net:3128' };
    expect((await run({ key }, { environment })).request?.service.proxy).toMatchObject({
      url: expect.stringContaining('proxy.example.net'),
    });
    expect((await run({ key, proxy: 'none' }, { environment })).request?.service.proxy).toBe('none');
    expect((await run({ key })).request?.service.proxy).toBeUndefined();
  });

  it('exits with 1 where the packet rules do not load, after the daemon was enabled', async () => {
    const unloaded = new CommandFailed('nft -f -', 1, 'Operation not supported');
    const { exitCode, stderr, enabled } = await run({ key }, { report: { unloaded } });
    expect([exitCode, enabled]).toEqual([1, 1]);
    expect(stderr).toContain('Operation not supported');
  });

  it('leaves the daemon alone with --no-enable', async () => {
    expect((await run({ key, enable: false })).enabled).toBe(0);
    const path = await fileOf();
    expect((await run({ 'from-config': path, enable: false }, { isJoined: true })).enabled).toBe(0);
  });
});

describe('a join from a file', () => {
  it('does nothing but enable the daemon where this host has joined already', async () => {
    const { exitCode, stdout, request, enabled } = await run({ 'from-config': await fileOf() }, { isJoined: true });
    expect([exitCode, request, enabled]).toEqual([0, undefined, 1]);
    expect(stdout).toContain('already joined office as peer-1');
  });

  it('joins again without a file, which a user decides', async () => {
    expect((await run({ key }, { isJoined: true })).request).toBeDefined();
  });

  it('takes its flags from the file, is unattended, and prompts for nothing, not even on a terminal', async () => {
    await writeFile(joinPath(folder, 'key'), key);
    const path = await fileOf('type = connector', `key = file:${folder}/key`);
    const { request, prompts } = await run({ 'from-config': path }, { typed: 'x' });
    expect([request?.type, request?.isUnattended, request?.token.reveal(), prompts]).toEqual([
      ...['connector', true, key],
      0,
    ]);
    const { error, prompts: none } = await run({ 'from-config': await fileOf() }, { typed: 'x' });
    expect([error?.message, none]).toEqual([expect.stringContaining('the enrolment key is missing'), 0]);
  });

  it.each(['json = yes', 'from-config = other.conf'])('refuses the line %j, which is for the caller', async (line) => {
    const { error } = await run({ 'from-config': await fileOf(line) });
    expect(error?.message).toContain('line 2: there is no');
  });
});

describe('the enrolment key', () => {
  const tokenOf = async (given: object, scene: Scene = {}) => (await run(given, scene)).request?.token.reveal();
  const other = (letter: string) => `cpn_${letter.repeat(43)}`;

  it('is the argument, else that of the environment, else the credential of the unit', async () => {
    await writeFile(joinPath(folder, 'cpn.enrollment-key'), other('c'));
    const credential = { CREDENTIALS_DIRECTORY: folder };
    const environment = { CPN_ENROLLMENT_KEY: other('e'), ...credential };
    expect(await tokenOf({ key }, { environment })).toBe(key);
    expect(await tokenOf({}, { environment })).toBe(other('e'));
    expect(await tokenOf({}, { environment: credential })).toBe(other('c'));
    const { error } = await run({}, { environment: { CREDENTIALS_DIRECTORY: '/nonexistent' } });
    expect(error?.message).toContain('the enrolment key is missing');
  });

  it('is asked for on a terminal, where none is given or standard input is named', async () => {
    for (const given of [{}, { key: '-' }]) {
      const { request, prompts } = await run(given, { typed: ` ${key}\n` });
      expect([request?.token.reveal(), prompts]).toEqual([key, 1]);
    }
    expect((await run({ key }, { typed: 'x' })).prompts).toBe(0);
  });

  it('that is another secret is refused, and not shown', async () => {
    const { error } = await run({ key: 'cpp_secret-of-a-peer' });
    expect(error?.message).toBe('the enrolment key must begin with "cpn_"; give all of what "cpn key create" showed');
    await writeFile(joinPath(folder, 'key'), key);
    const named = await run({ key: joinPath(folder, 'key') });
    expect(named.error?.message).toContain(`where that is a file, write file:${folder}/key`);
  });

  it('is asked for last, after mistakes in flags were reported', async () => {
    const { error, prompts } = await run({ mtu: 'x' }, { typed: key });
    expect([error?.message, prompts]).toEqual([expect.stringContaining('--mtu'), 0]);
  });
});
