import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { renderScript } from '../../packaging/deb.ts';
import { renderSpec } from '../../packaging/rpm.ts';
import { listUnits } from '../../packaging/tree.ts';
import { run } from '../lab/run.ts';

/** The folders of the machine that the scripts read and write. */
const places = ['/run/systemd', '/var/lib', '/usr/lib/cpn', '/etc/systemd/system'];
const services = listUnits().filter((unit) => unit.endsWith('.service'));
const [first, ...byHand] = ['cpn-join.service', 'cpn-control-plane.service', 'cpn.service'];

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'cpn-installed-'));
  for (const place of places) mkdirSync(join(root, place), { recursive: true });
  mkdirSync(join(root, 'run/systemd/system'));
  mkdirSync(join(root, 'tools'));
  for (const tool of ['systemctl', 'deb-systemd-helper', 'deb-systemd-invoke']) put(`tools/${tool}`, record(tool));
  put('usr/lib/cpn/node', record('node'));
});
afterEach(() => rmSync(root, { recursive: true }));

function put(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text, { mode: 0o755 });
}

/** A tool that notes its arguments. The unit called $DISABLED was disabled by its administrator. */
function record(tool: string): string {
  return `#!/bin/sh\necho "${tool} $*" >>${root}/calls\ncase "$*" in *was-enabled*) [ "$3" != "$DISABLED" ];; esac\n`;
}

/** Runs a script with these arguments, with folders of its own, and returns what it called. */
async function perform(script: string, args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  put(
    'script',
    places.reduce((text, place) => text.replaceAll(place, join(root, place)), script),
  );
  rmSync(join(root, 'calls'), { force: true });
  const env = { PATH: `${join(root, 'tools')}:/usr/bin:/bin:/usr/sbin:/sbin`, ...environment };
  const { stderr } = await run(['sh', join(root, 'script'), ...args], { env });
  const calls = existsSync(join(root, 'calls')) ? readFileSync(join(root, 'calls'), 'utf8').trim().split('\n') : [];
  return { calls: calls.map((call) => call.replaceAll(root, '')), stderr };
}

describe('the units', () => {
  it('are a first join, which starts with the host, and those that are started by hand', () => {
    expect(services.toSorted()).toEqual([first, ...byHand].toSorted());
  });
});

describe('installing the Debian package', () => {
  const install = (environment?: Readonly<Record<string, string>>) =>
    perform(renderScript('postinst'), ['configure', '1.0.0'], environment);

  it('enables the first join, starts it, and restarts what runs', async () => {
    expect((await install()).calls).toEqual([
      'node /usr/lib/cpn/compile.cjs',
      `deb-systemd-helper unmask ${first}`,
      `deb-systemd-helper --quiet was-enabled ${first}`,
      `deb-systemd-helper enable ${first}`,
      'systemctl --system daemon-reload',
      `deb-systemd-invoke restart ${first}`,
      ...byHand.map((unit) => `deb-systemd-invoke try-restart ${unit}`),
    ]);
  });

  it('leaves a unit disabled that its administrator disabled', async () => {
    const { calls } = await install({ DISABLED: first ?? '' });
    expect(calls).toContain(`deb-systemd-helper update-state ${first}`);
    expect(calls).not.toContain(`deb-systemd-helper enable ${first}`);
  });

  it('makes the folder of the state for root alone, also one that is there', async () => {
    mkdirSync(join(root, 'var/lib/cpn'), { mode: 0o755 });
    await install();
    expect(statSync(join(root, 'var/lib/cpn')).mode & 0o7777).toBe(0o700);
  });

  it('starts nothing without systemd, and compiles nothing in another root', async () => {
    rmSync(join(root, 'run/systemd/system'), { recursive: true });
    expect((await install({ DPKG_ROOT: '/elsewhere' })).calls.map((call) => call.split(' ')[0])).toEqual(
      Array(3).fill('deb-systemd-helper'),
    );
  });

  it.each(['abort-upgrade', 'abort-remove', 'triggered'])('does nothing for %s', async (argument) => {
    expect((await perform(renderScript('postinst'), [argument])).calls).toEqual([]);
    expect(existsSync(join(root, 'var/lib/cpn'))).toBe(false);
  });
});

describe('removing the Debian package', () => {
  it('stops every unit, and names the tunnels that stay', async () => {
    put('usr/lib/cpn/compiled/x', '');
    for (const link of ['cpn0', 'cpn1']) put(`var/lib/cpn/${link}.json`, '{}');
    const { calls, stderr } = await perform(renderScript('prerm'), ['remove']);
    expect(calls).toEqual(listUnits().map((unit) => `deb-systemd-invoke stop ${unit}`));
    expect(stderr).toMatch(/these tunnels stay up as they are, and [^:]+: cpn0 cpn1\n/);
    expect(existsSync(join(root, 'usr/lib/cpn/compiled'))).toBe(false);
    expect(readdirSync(join(root, 'var/lib/cpn'))).toEqual(['cpn0.json', 'cpn1.json']);
  });

  it('says nothing of a host that has joined no network', async () => {
    expect((await perform(renderScript('prerm'), ['remove'])).stderr).toBe('');
  });

  it.each(['upgrade', 'deconfigure', 'failed-upgrade'])('stops nothing for %s', async (argument) => {
    put('usr/lib/cpn/compiled/x', '');
    expect((await perform(renderScript('prerm'), [argument, '2.0.0'])).calls).toEqual([]);
    expect(existsSync(join(root, 'usr/lib/cpn/compiled/x'))).toBe(true);
  });

  const wants = `etc/systemd/system/multi-user.target.wants`;

  it('keeps state and links of units until it is purged', async () => {
    put('var/lib/cpn/cpn0.json', '{}');
    put(`${wants}/cpn.service`, '');
    for (const argument of ['remove', 'upgrade', 'disappear'])
      expect((await perform(renderScript('postrm'), [argument])).calls).toEqual(['systemctl --system daemon-reload']);
    expect(readdirSync(join(root, 'var/lib/cpn'))).toEqual(['cpn0.json']);
    expect(existsSync(join(root, wants, 'cpn.service'))).toBe(true);
  });

  it('purged leaves no link of a unit, and those of others', async () => {
    for (const unit of [...listUnits(), 'other.service']) put(`${wants}/${unit}`, '');
    const { calls } = await perform(renderScript('postrm'), ['purge']);
    expect(readdirSync(join(root, wants))).toEqual(['other.service']);
    expect(calls).toEqual([
      ...listUnits().map((unit) => `deb-systemd-helper purge ${unit}`),
      'systemctl --system daemon-reload',
    ]);
  });
});

describe('the scripts of the rpm', () => {
  /** A scriptlet of the spec, whose first argument is the number of installations that are left after it. */
  const scriptlet = (name: string) =>
    new RegExp(`^%${name}\n([\\s\\S]*?)\n\n`, 'm').exec(renderSpec('/tree', 'none'))?.[1] ?? '';

  it('install: the first join is enabled as the system presets it, and not again by an upgrade', async () => {
    const reload = 'systemctl --system daemon-reload';
    const compile = 'node /usr/lib/cpn/compile.cjs';
    expect((await perform(scriptlet('post'), ['1'])).calls).toEqual([
      compile,
      `systemctl --no-reload preset ${first}`,
      reload,
    ]);
    expect((await perform(scriptlet('post'), ['2'])).calls).toEqual([compile, reload]);
  });

  it('remove: every unit is stopped and disabled, and none by an upgrade', async () => {
    put('usr/lib/cpn/compiled/x', '');
    expect((await perform(scriptlet('preun'), ['1'])).calls).toEqual([]);
    expect(existsSync(join(root, 'usr/lib/cpn/compiled/x'))).toBe(true);
    expect((await perform(scriptlet('preun'), ['0'])).calls).toEqual(
      listUnits().map((unit) => `systemctl --no-reload disable --now ${unit}`),
    );
    expect(existsSync(join(root, 'usr/lib/cpn/compiled'))).toBe(false);
    expect((await perform(scriptlet('postun'), ['0'])).calls).toEqual(['systemctl --system daemon-reload']);
  });

  it('packs every unit that the package brings', () => {
    const listed = [...renderSpec('/tree', 'none').matchAll(/^\/usr\/lib\/systemd\/system\/(.+)$/gm)];
    expect(listed.map(([, unit]) => unit)).toEqual(listUnits());
  });
});
