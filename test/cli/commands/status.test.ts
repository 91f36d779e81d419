import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import * as formerNetworks from '../../../src/app/networks/former-networks.ts';
import * as statuses from '../../../src/app/status/status.ts';
import { rateMeter, readNetworks, status } from '../../../src/cli/commands/status.ts';
import * as context from '../../../src/cli/context.ts';
import { Input } from '../../../src/cli/input/input.ts';
import * as texts from '../../../src/cli/output/show-status.ts';
import { Unreachable } from '../../../src/core/errors/index.ts';
import { startExaminedHost } from '../../app/doctor/examined-host.ts';
import { mapAt } from '../../app/joined-state.ts';
import { peer } from '../../core/samples.ts';
import { runCommand } from './run-command.ts';

/** The status of a host whose daemon left this pid file, or none. */
async function readWith(pidFile: string | null) {
  const runtime = await mkdtemp(join(tmpdir(), 'cpn-status-'));
  onTestFinished(() => rm(runtime, { recursive: true }));
  if (pidFile !== null) await writeFile(join(runtime, 'daemon.pid'), pidFile);
  const { tools } = (await startExaminedHost(mapAt('"1"', [peer(2)]))).simulated;
  await tools.store.amendNotes('cpn0', { reachability: { reachableBy: 1, witnesses: 2 } });
  const [network] = await readNetworks(tools, new Input({}, status.flags, { CPN_RUNTIME_DIR: runtime }));
  return { reachability: network?.reachability, killed: network?.warnings.filter((text) => text.includes('killed')) };
}

/** The id of a process that has ended. */
async function findEndedPid(): Promise<number> {
  const child = spawn('true');
  await once(child, 'exit');
  return child.pid ?? 0;
}

describe('the status of a host', () => {
  it('whose daemon runs has what the control plane answered to its reports, and no warning', async () => {
    expect(await readWith(`${process.pid}\n`)).toEqual({
      reachability: { reachableBy: 1, witnesses: 2 },
      killed: [],
    });
  });

  it('whose daemon was killed has a warning with its pid, and no answers, which are not current', async () => {
    const pid = await findEndedPid();
    expect(await readWith(`${pid}\n`)).toEqual({
      reachability: null,
      killed: [expect.stringMatching(new RegExp(`the daemon \\(pid ${pid}\\) was killed; .*"cpn run"`))],
    });
  });

  it.each([
    ['none', null],
    ['an empty one', ''],
    ['one without a pid', 'soon'],
  ])('whose daemon left no pid, as for one that was stopped, has neither: %s', async (_, pidFile) => {
    expect(await readWith(pidFile)).toEqual({ reachability: null, killed: [] });
  });
});

describe('cpn status', () => {
  afterEach(() => vi.restoreAllMocks());
  const network = { interface: 'cpn0', problems: [], failure: null, peers: [], warnings: [], reachability: null };
  const unreachable = new Unreachable('x', 'silent', { delivered: false, heard: false, retryAfterMs: null });
  const run = async (given: object, networks: object[], former: object[] = []) => {
    vi.restoreAllMocks();
    vi.spyOn(statuses, 'readStatus').mockResolvedValue(networks as never);
    vi.spyOn(formerNetworks, 'listFormer').mockResolvedValue(former as never);
    vi.spyOn(texts, 'statusToText').mockImplementation(({ interface: link }) => `${link} shown`);
    vi.spyOn(context, 'readDaemon').mockResolvedValue({ pid: 7, alive: true });
    const tools = { host: { check: async () => {} }, now: () => new Date(0) };
    return runCommand(status, { ...given }, { tools });
  };
  const broken = { ...network, interface: 'cpn1', problems: [{ code: 'x', severity: 'problem', text: 'x' }] };

  it('with --check is well only where each of the networks is, and there is one', async () => {
    const codes = [];
    for (const networks of [[network], [network, broken], []])
      codes.push((await run({ check: true }, networks)).exitCode);
    expect(codes).toEqual([0, 3, 3]);
    expect((await run({}, [])).exitCode).toBe(0);
    expect((await run({}, [broken])).exitCode).toBe(0);
  });

  it('shows each network, and exits with the code of the first that cannot be read', async () => {
    const failed = { ...network, interface: 'cpn1', failure: unreachable };
    const { exitCode, stdout, stderr } = await run({}, [network, failed, { ...failed, interface: 'cpn2' }]);
    expect([exitCode, stdout]).toEqual([5, 'cpn0 shown\n\ncpn1 shown\n\ncpn2 shown\n']);
    expect(stderr.match(/silent/g)).toHaveLength(2);
  });

  it('goes without --json or --check with --watch, which never ends', async () => {
    for (const other of ['json', 'check']) {
      expect((await run({ watch: true, [other]: true }, [])).error?.message).toContain(
        '--watch runs until interrupted',
      );
    }
  });
});

describe('the rates of peers', () => {
  const reading = (rxBytes: number, txBytes: number) => ({ publicKey: 'key', rxBytes, txBytes }) as never;
  const of = (link: string, peer: object) => [{ interface: link, peers: [peer] }] as never;

  it('are those since the last reading of the same peer of the same network', () => {
    const measure = rateMeter();
    expect(measure(of('cpn0', reading(100, 10)), 10)('cpn0', reading(100, 10))).toEqual({ received: null, sent: null });
    const rates = measure(of('cpn0', reading(300, 20)), 12);
    expect(rates('cpn0', reading(300, 20))).toEqual({ received: 100, sent: 5 });
    expect(rates('cpn1', reading(300, 20))).toEqual({ received: null, sent: null });
  });

  it('are none of a counter that began again, nor within no time', () => {
    const measure = rateMeter();
    measure(of('cpn0', reading(100, 10)), 10);
    expect(measure(of('cpn0', reading(7, 30)), 12)('cpn0', reading(7, 30))).toEqual({ received: null, sent: 10 });
    expect(measure(of('cpn0', reading(9, 30)), 12)('cpn0', reading(9, 30))).toEqual({ received: null, sent: null });
  });
});
