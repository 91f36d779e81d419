import { tmpdir } from 'node:os';
import { expect, it } from 'vitest';
import { CommandFailed, MissingTool } from '../../../src/core/errors/index.ts';
import type { Run } from '../../../src/host/process/run.ts';
import { findUnit } from '../../../src/host/systemd/unit.ts';

/** Of `systemctl is-enabled`, by what it prints; a newer one has 4 for a unit without a file. */
const exitCodes: Readonly<Record<string, number>> = { disabled: 1, masked: 1, 'not-found': 4 };

/** A systemctl that says this of the unit's file. */
function systemctl(said: string | Error) {
  const calls: string[] = [];
  const run: Run = async (tool, args, { allowExitCodes = [] } = {}) => {
    calls.push([tool, ...args].join(' '));
    if (said instanceof Error) throw said;
    const exitCode = exitCodes[said.trim()] ?? 0;
    if (args.includes('is-enabled') && exitCode > 0 && !allowExitCodes.includes(exitCode))
      throw new CommandFailed('systemctl is-enabled', exitCode, said);
    return args.includes('is-enabled') ? said : '';
  };
  return { calls, run };
}

it('the unit is enabled without waiting for it, and disabled with waiting', async () => {
  const { calls, run } = systemctl('disabled\n');
  const unit = await findUnit(run, tmpdir());
  await unit?.enable();
  await unit?.disable();
  expect(unit).toMatchObject({ name: 'cpn.service', isEnabled: false });
  expect(calls.slice(1)).toEqual([
    'systemctl --quiet --no-ask-password --no-block --now enable cpn.service',
    'systemctl --quiet --no-ask-password --now disable cpn.service',
  ]);
  expect(await findUnit(systemctl('enabled\n').run, tmpdir())).toMatchObject({ isEnabled: true });
});

it.each([
  ['enabled', true],
  ['enabled-runtime', true],
  ['disabled', false],
  ['masked', false],
])('a unit file that is %s starts the daemon at boot: %s', async (state, isEnabled) => {
  expect(await findUnit(systemctl(`${state}\n`).run, tmpdir())).toMatchObject({ isEnabled });
});

it.each([
  ['the unit is not installed', ''],
  ['a newer systemd says so', 'not-found\n'],
  ['there is no systemctl', new MissingTool('systemctl', 'get it')],
])('there is none where %s', async (_, said) => {
  expect(await findUnit(systemctl(said).run, tmpdir())).toBe(null);
});

it('nothing is run where systemd does not run', async () => {
  const { calls, run } = systemctl('enabled');
  expect([await findUnit(run, `${tmpdir()}/no-such-folder`), calls]).toEqual([null, []]);
});

it('a systemd that does not answer is an error', async () => {
  await expect(findUnit(systemctl(new CommandFailed('systemctl', null, 'late')).run, tmpdir())).rejects.toThrow('late');
});
