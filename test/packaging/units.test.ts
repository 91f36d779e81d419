import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listUnits } from '../../packaging/tree.ts';
import { loadCommands } from '../../src/cli/parse/commands.ts';
import { run } from '../lab/run.ts';

const commands = await loadCommands();

const folder = join(import.meta.dirname, '../../packaging/systemd');
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
});
