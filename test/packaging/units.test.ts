import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listUnits } from '../../packaging/tree.ts';
import { exitCodes } from '../../src/cli/exit-code.ts';
import { usualJoinFile } from '../../src/cli/input/join-file.ts';
import { loadCommands } from '../../src/cli/parse/commands.ts';
import { run } from '../lab/run.ts';
import { readUnit } from './unit-file.ts';

const commands = await loadCommands();

const folder = join(import.meta.dirname, '../../packaging/systemd');
const readSource = (path: string) => readFileSync(join(import.meta.dirname, '../..', path), 'utf8');
const units = listUnits();
const services = units.filter((unit) => unit.endsWith('.service'));
let root: string;

/** A root that has what the units name; systemd-analyze looks nowhere else. */
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'cpn-units-'));
  for (const path of ['usr/lib/systemd/system', 'usr/bin', 'bin']) mkdirSync(join(root, path), { recursive: true });
  for (const program of ['usr/bin/cpn', 'bin/kill']) writeFileSync(join(root, program), '', { mode: 0o755 });
  for (const unit of units) writeFileSync(join(root, 'usr/lib/systemd/system', unit), readFileSync(join(folder, unit)));
  for (const name of ['sysinit', 'basic', 'shutdown', 'multi-user', 'network-online', 'network-pre']) {
    writeFileSync(join(root, `usr/lib/systemd/system/${name}.target`), `[Unit]\nDescription=${name}\n`);
  }
});

afterAll(() => rmSync(root, { recursive: true, force: true }));

it('systemd finds nothing wrong in the units', async () => {
  const argv = ['systemd-analyze', 'verify', `--root=${root}`, '--man=no', '--recursive-errors=no', ...units];
  const { stdout, stderr } = await run(argv, { timeoutMs: 30_000 });
  expect(`${stdout}${stderr}`).toBe('');
});

it.each(services)('%s is exposed by 2.1 or less', async (unit) => {
  const argv = ['systemd-analyze', 'security', '--offline=true', '--threshold=21', join(folder, unit)];
  const { exitCode, stdout } = await run(argv, { allowFailure: true, timeoutMs: 30_000 });
  expect([exitCode, stdout.trim().split('\n').at(-1)]).toEqual([0, expect.stringMatching(/level for .*: [0-2]\.\d/)]);
});

describe('the services', () => {
  const read = (unit: string) => readFileSync(join(folder, unit), 'utf8');

  it('run commands that there are', () => {
    for (const unit of services) {
      const words = /^ExecStart=\/usr\/bin\/cpn (.*)$/m.exec(read(unit))?.[1] ?? '';
      expect(commands.some(({ name }) => `${words} `.startsWith(`${name} `))).toBe(true);
    }
  });

  it('that run for ever say when they are ready and alive, are started again, and leave no memory behind', () => {
    for (const unit of ['cpn.service', 'cpn-control-plane.service']) {
      for (const line of ['Type=notify', 'NotifyAccess=all', 'WatchdogSec=', 'Restart=always', 'LimitCORE=0']) {
        expect([unit, read(unit)]).toEqual([unit, expect.stringContaining(`\n${line}`)]);
      }
    }
  });

  it('are given each credential that their comment or the manual names', () => {
    const unit = read('cpn-control-plane.service');
    const manual = readFileSync(join(folder, '../../docs/control-plane.md'), 'utf8');
    const named = `${unit}${manual}`.matchAll(/\/run\/credentials\/cpn-control-plane\.service\/(\S+)/g);
    const names = new Set([...named].map(([, name]) => name));
    expect(names).toContain('cpn.webhook-secret');
    for (const name of names) expect(unit).toContain(`\nLoadCredential=${name}\n`);
  });

  it('that bring tunnels up leave those in user space alone when they end', () => {
    for (const unit of ['cpn.service', 'cpn-join.service']) {
      expect(read(unit)).toMatch(/^KillMode=process$/m);
      expect(read(unit)).toMatch(/^RuntimeDirectoryPreserve=yes$/m);
    }
  });

  /** A setting of a section, which is there once. */
  const settingOf = (unit: string, section: string, key: string) => readUnit(unit).get(section)?.get(key)?.join('; ');

  it('are not started again after a failure that stays, by its exit code', () => {
    const { usage, refused } = exitCodes;
    const codes = (unit: string) => settingOf(unit, 'Service', 'RestartPreventExitStatus')?.split(' ').map(Number);
    expect(codes('cpn.service')).toEqual([usage]);
    expect(codes('cpn-control-plane.service')).toEqual([usage]);
    // A key that is used up, or that is void, stays so.
    expect(codes('cpn-join.service')).toEqual([usage, refused]);
    expect(settingOf('cpn-join.service', 'Service', 'Restart')).toBe('on-failure');
    for (const unit of services) expect(settingOf(unit, 'Unit', 'StartLimitIntervalSec')).toBe('0');
  });

  it('have time to end as the program does', () => {
    const [, daemonMs] = /maxStopMs = ([\d_]+)/.exec(readSource('src/cli/commands/run.ts')) ?? [];
    const [, planeMs] = /closing: ([\d_]+)/.exec(readSource('src/control-plane/http/transport.ts')) ?? [];
    for (const [unit, ms] of [
      ['cpn.service', daemonMs],
      ['cpn-control-plane.service', planeMs],
    ] as const) {
      const bound = Number(ms?.replaceAll('_', ''));
      expect(Number(settingOf(unit, 'Service', 'TimeoutStopSec')) * 1000).toBeGreaterThan(bound);
    }
  });

  it('reload by SIGHUP, start with the host, and have their order', () => {
    for (const unit of ['cpn.service', 'cpn-control-plane.service'])
      expect(settingOf(unit, 'Service', 'ExecReload')).toBe('/bin/kill -HUP $MAINPID');
    for (const unit of services) expect(settingOf(unit, 'Install', 'WantedBy')).toBe('multi-user.target');
    // The daemon needs no network. A service that needs an address waits for the target.
    expect(settingOf('cpn.service', 'Unit', 'Before')).toBe('cpn-online.target');
    expect(settingOf('cpn.service', 'Unit', 'Wants')).toBe('network-pre.target');
    expect(settingOf('cpn-online.target', 'Unit', 'After')).toBe('cpn.service');
    for (const firewall of ['nftables', 'firewalld', 'ufw'])
      expect(settingOf('cpn.service', 'Unit', 'After')).toContain(`${firewall}.service`);
    for (const unit of ['cpn-join.service', 'cpn-control-plane.service']) {
      expect(settingOf(unit, 'Unit', 'Wants')).toBe('network-online.target');
      expect(settingOf(unit, 'Unit', 'After')).toContain('network-online.target nss-lookup.target');
    }
  });

  it('of a first join reads the usual file, where that is there, once', () => {
    expect(settingOf('cpn-join.service', 'Unit', 'ConditionPathExists')).toBe(usualJoinFile);
    expect(settingOf('cpn-join.service', 'Service', 'ExecStart')).toMatch(
      new RegExp(` --from-config ${usualJoinFile}$`),
    );
    expect(settingOf('cpn-join.service', 'Service', 'Type')).toBe('oneshot');
    expect(settingOf('cpn-join.service', 'Service', 'RemainAfterExit')).toBe('yes');
    const [, credential] = /const credential = '(.+)';/.exec(readSource('src/cli/commands/join.ts')) ?? [];
    expect(settingOf('cpn-join.service', 'Service', 'LoadCredential')).toBe(credential);
  });

  it('of the daemon is the last that the kernel ends without memory', () => {
    expect(Number(settingOf('cpn.service', 'Service', 'OOMScoreAdjust'))).toBeLessThan(0);
  });
});
