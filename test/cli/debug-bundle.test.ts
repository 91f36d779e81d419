import { afterEach, describe, expect, it, vi } from 'vitest';
import * as doctor from '../../src/app/doctor/examine.ts';
import * as explaining from '../../src/app/inspect/explain.ts';
import * as planning from '../../src/app/networks/reconcile.ts';
import * as describing from '../../src/app/status/describe-state-files.ts';
import * as status from '../../src/app/status/status.ts';
import { debugBundle } from '../../src/cli/commands/debug.ts';
import * as context from '../../src/cli/context.ts';
import * as bundles from '../../src/cli/debug-bundle.ts';
import { gatherBundle } from '../../src/cli/debug-bundle.ts';
import * as secretFiles from '../../src/cli/input/secret-file.ts';
import { CommandFailed } from '../../src/core/errors/index.ts';
import { runCommand } from './commands/run-command.ts';

afterEach(() => vi.restoreAllMocks());

const tools = { inspector: { diagnostics: async () => new Map([['wg.txt', 'key: s3cret']]) } } as never;
const failed = new CommandFailed('wg show', 1, 'no s3cret');

function prepare() {
  vi.spyOn(describing, 'describeStateFiles').mockResolvedValue({
    states: new Map([['cpn0', { token: 's3cret' }]]),
    secrets: new Set(['s3cret']),
    peers: ['10.77.0.2', 'fd00::1:2'] as never,
  });
  vi.spyOn(doctor, 'examine').mockResolvedValue([]);
  vi.spyOn(status, 'readStatus').mockResolvedValue([]);
  vi.spyOn(planning, 'planNetworks').mockResolvedValue([]);
  const explanation = { address: '10.77.0.2', network: null, interface: null, checks: [], stop: null };
  vi.spyOn(explaining, 'explainAddress').mockResolvedValue(explanation as never);
}

describe('a debug bundle', () => {
  it('has the secrets of no file, of this host neither', async () => {
    prepare();
    const bundle = await gatherBundle(tools);
    expect([...bundle.keys()]).toEqual([
      ...['version.json', 'doctor.json', 'status.json', 'plan.json', 'state/cpn0.json'],
      ...['explain/10.77.0.2.json', 'explain/fd00__1_2.json', 'host/wg.txt'],
    ]);
    expect([...bundle].filter(([, text]) => text.includes('s3cret'))).toEqual([]);
  });

  it.each([
    ['doctor.json', () => vi.spyOn(doctor, 'examine')],
    ['status.json', () => vi.spyOn(status, 'readStatus')],
    ['plan.json', () => vi.spyOn(planning, 'planNetworks')],
    ['explain/10.77.0.2.json', () => vi.spyOn(explaining, 'explainAddress')],
  ])('has the error in place of %s, and all other files', async (name, spy) => {
    prepare();
    spy().mockRejectedValueOnce(failed);
    const bundle = await gatherBundle(tools);
    expect(JSON.parse(bundle.get(name) ?? '')).toMatchObject({ failed: 'CommandFailed' });
    expect([bundle.size, bundle.get(name)?.includes('s3cret')]).toEqual([8, false]);
    spy().mockRejectedValueOnce(new TypeError('a bug'));
    await expect(gatherBundle(tools)).rejects.toThrow('a bug');
  });
});

describe('cpn debug bundle', () => {
  it('writes what it named, to a new file that has a name of its second by default', async () => {
    vi.spyOn(context, 'openDoctor').mockResolvedValue({ now: () => new Date('2030-01-31T18:05:09.123Z') } as never);
    vi.spyOn(bundles, 'gatherBundle').mockResolvedValue(new Map([['doctor.json', '{}\n']]));
    const write = vi.fn(async () => {});
    const made = vi
      .spyOn(secretFiles, 'makeSecretFile')
      .mockResolvedValue({ path: '', write, discard: async () => {} });
    const { exitCode, stdout, stderr } = await runCommand(debugBundle, { json: true });
    const file = 'cpn-debug-20300131T180509Z.tar.gz';
    expect([exitCode, JSON.parse(stdout), made.mock.calls[0]?.[0]]).toEqual([
      0,
      { file, contents: ['doctor.json'] },
      file,
    ]);
    expect([stderr.includes('  doctor.json\n'), write.mock.calls.length]).toEqual([true, 1]);
    await runCommand(debugBundle, { file: '/tmp/x.tar.gz' });
    expect(made.mock.calls[1]?.[0]).toBe('/tmp/x.tar.gz');
  });
});
