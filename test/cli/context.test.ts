import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import * as trust from '../../src/api/http/environment-trust.ts';
import * as peerServices from '../../src/api/peer-service.ts';
import { openTools, openUnit, readDaemon, warnOfTrust } from '../../src/cli/context.ts';
import * as signals from '../../src/cli/daemon/stop-signals.ts';
import { Input } from '../../src/cli/input/input.ts';
import * as units from '../../src/host/systemd/unit.ts';
import { replaceFile } from '../../src/store/files/atomic-file.ts';
import { joinedTo, mapAt } from '../app/joined-state.ts';

let folder: string;
let said: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cpn-context-'));
  said = '';
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    said += String(text);
    return true;
  });
});
afterEach(async () => {
  vi.restoreAllMocks();
  await rm(folder, { recursive: true });
});

const inputOf = (environment: Record<string, string> = {}) =>
  new Input({}, {}, { CPN_STATE_DIR: folder, CPN_CONFIG_DIR: folder, CPN_RUNTIME_DIR: folder, ...environment });

const service = { url: 'https://cp.example.net', insecureHttp: false };

describe('the client of a control plane', () => {
  const connect = async (mode: 'command' | 'daemon', known: object, environment = {}) => {
    const connected = vi.spyOn(peerServices, 'connectPeerService').mockReturnValue({} as never);
    const tools = await openTools(inputOf({ CPN_LOG_LEVEL: 'silent', ...environment }), mode);
    await tools.connect({ service, features: null, ...known }, { attempts: 1 });
    return connected.mock.calls.at(-1) as Parameters<typeof peerServices.connectPeerService>;
  };

  it('of a daemon names its start, and that of a command does not', async () => {
    expect((await connect('command', {}))[2]).toMatchObject({ instance: null, deadlineMs: 30_000, attempts: 1 });
    const first = (await connect('daemon', {}))[2]?.instance;
    expect(first).toMatch(/^[0-9a-f]{16}$/);
    expect((await connect('daemon', {}))[2]?.instance).not.toBe(first);
  });

  it('has the features, the known addresses and the deletion of its network', async () => {
    expect((await connect('command', {})).slice(0, 2)).toEqual([service, []]);
    const resolved = { 'cp.example.net': ['192.0.2.1'] };
    const [, features, options] = await connect('command', { features: ['map-wait'], resolved, deletion: {} });
    expect([features, options]).toEqual([['map-wait'], expect.objectContaining({ resolved, isDeleted: true })]);
    expect((await connect('command', {}))[2]).toMatchObject({ resolved: {}, isDeleted: false });
  });

  it('says once per control plane that the proxy of the environment is not used', async () => {
    vi.spyOn(peerServices, 'connectPeerService').mockReturnValue({} as never);
    const environment = { HTTPS_PROXY: 'http://user:secret@proxy.example.net:3128' };
    const tools = await openTools(inputOf(environment));
    const other = { ...service, url: 'https://other.example.net' };
    for (const each of [service, other, service, { ...service, proxy: 'none' as const }]) {
      await tools.connect({ service: each, features: null });
    }
    expect(said.match(/HTTPS_PROXY names a proxy that is not saved; connecting to \S+/g)).toEqual([
      'HTTPS_PROXY names a proxy that is not saved; connecting to https://cp.example.net',
      'HTTPS_PROXY names a proxy that is not saved; connecting to https://other.example.net',
    ]);
    expect(said).not.toContain('secret');
  });

  it('is no other for a proxy of the environment that is none', async () => {
    await connect('command', {}, { HTTPS_PROXY: 'no proxy' });
    expect(said).toBe('');
  });
});

describe('a signal during revertible work', () => {
  it('is for the work of a command, and not for that of a daemon, which has its own', async () => {
    const deferred = vi.spyOn(signals, 'deferSignals').mockImplementation((work) => work(AbortSignal.abort()));
    const work = async (interrupted: AbortSignal) => interrupted.aborted;
    const silent = { CPN_LOG_LEVEL: 'silent' };
    expect(await (await openTools(inputOf(silent), 'daemon')).deferSignals(work)).toBe(false);
    expect(deferred).not.toHaveBeenCalled();
    expect(await (await openTools(inputOf(silent))).deferSignals(work)).toBe(true);
  });
});

describe('the daemon of a pid file', () => {
  it.each([
    ['ESRCH', false],
    ['EPERM', true],
  ])('is alive where a signal fails with %s: %j', async (code, alive) => {
    await replaceFile(join(folder, 'daemon.pid'), '4711\n');
    vi.spyOn(process, 'kill').mockImplementation(() => {
      throw Object.assign(new Error(code), { code });
    });
    expect(await readDaemon(inputOf())).toEqual({ pid: 4711, alive });
  });
});

describe('the unit of the daemon', () => {
  it.each<[Record<string, string>, boolean]>([
    [{}, true],
    [{ CPN_CONFIG_DIR: '/x' }, false],
    [{ CPN_STATE_DIR: '/x' }, false],
    [{ CPN_RUNTIME_DIR: '/x' }, false],
  ])('of a host with %j is looked for: %j', async (environment, isSought) => {
    const found = vi.spyOn(units, 'findUnit').mockResolvedValue(null);
    await openUnit(new Input({}, {}, environment));
    expect(found.mock.calls.length > 0).toBe(isSought);
  });
});

describe('a certificate that a variable of the command makes valid', () => {
  it.each([
    [{ name: 'NODE_EXTRA_CA_CERTS', path: '/root/ca.pem' }, 'cpn set cpn0 --ca-file /root/ca.pem'],
    // A folder is no file to save.
    [{ name: 'SSL_CERT_DIR', path: '/root/certs' }, 'cpn set cpn0 --ca-file FILE'],
    [null, null],
  ])('is warned about for %j', async (variable, remedy) => {
    vi.spyOn(trust, 'findTrustVariable').mockResolvedValue(variable);
    await warnOfTrust(joinedTo(mapAt('"1"', [])), inputOf());
    await setImmediate();
    expect(said).toEqual(
      remedy === null
        ? ''
        : expect.stringContaining(
            `${variable?.name}, a variable that cpn.service does not receive; save the CA for both: ${remedy}\n`,
          ),
    );
  });
});
