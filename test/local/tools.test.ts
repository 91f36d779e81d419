/** Only root may decide where the program searches for its tools, since they run as root. */
import { readFile, symlink, writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Office, startOffice } from '../e2e/office.ts';
import { builtProgram } from '../lab/built-program.ts';
import { makeKey } from '../lab/control-plane.ts';
import { readExecs, traceExecs } from '../lab/exec-trace.ts';
import type { Host } from '../lab/host.ts';

const falseTools = [
  ...['wg', 'ip', 'nft', 'wg-quick', 'wireguard-go', 'boringtun-cli', 'ping', 'sysctl', 'resolvectl', 'systemctl'],
  ...['systemd-notify', 'readlink', 'node', 'sh', 'env', 'uname'],
];

let office: Office;
let host: Host;
/** The folder of the fake tools, and the working directory. */
let trap: string;
/** The file that a fake tool writes. */
let sprung: string;
/** The program by a link, as npm installs it. */
let link: string;

beforeAll(async () => {
  office = await startOffice();
  host = await office.lab.addHost('host', { address: '203.0.113.11/24' });
  trap = path(host.folder, 'trap');
  sprung = path(host.folder, 'sprung');
  link = path(host.folder, 'cpn');
  await symlink(await builtProgram(), link);
  await host.exec(['mkdir', trap]);
  for (const tool of falseTools)
    await writeFile(path(trap, tool), `#!/bin/sh\necho "$0 $*" >>${sprung}\nexit 1\n`, { mode: 0o755 });
  await writeFile(path(trap, 'profile'), `echo profile >>${sprung}\n`);
}, 60_000);

afterAll(() => office?.lab.stop());

test.each([
  ['stand first on PATH, and in the working folder, which it names in two ways', () => `${trap}:.::${host.env.PATH}`],
  ['are all that PATH has', () => trap],
])('false tools are never run where they %s, and no tool gets anything of our environment', async (_where, PATH) => {
  const env = {
    PATH: PATH(),
    LD_PRELOAD: path(trap, 'preload.so'),
    LD_LIBRARY_PATH: trap,
    BASH_ENV: path(trap, 'profile'),
    ENV: path(trap, 'profile'),
    NODE_OPTIONS: '--no-warnings',
    LC_ALL: 'de_DE.UTF-8',
    IFS: '/',
    WG_QUICK_USERSPACE_IMPLEMENTATION: path(trap, 'wireguard-go'),
  };
  const trace = path(host.folder, `trace-${env.PATH.length}`);
  const script = `set -e; "$0" join - ${office.api.join(' ')} --type connector --wait 0
    "$0" reconcile; "$0" status; "$0" leave --yes --verify`;
  // The environment is the programs' own. strace ends with the last of them, which is the tunnel's.
  const set = Object.entries(env).flatMap(([name, value]) => ['-E', `${name}=${value}`]);
  const argv = traceExecs(trace, [...set, '/bin/sh', '-c', script, link]);
  const key = await makeKey(office.controlPlane, 'office', `host ${env.PATH.length}`, '--type', 'connector');
  await host.exec(['/usr/bin/env', '-C', trap, ...argv], { timeoutMs: 60_000, input: key });
  expect(await readFile(sprung, 'utf8').catch(() => 'nothing')).toBe('nothing');

  const started = await readExecs(trace);
  const ours = started.filter(({ env: given }) => given.some((each) => each.startsWith('CPN_LAB=')));
  expect(new Set(ours.map(({ path: program }) => program.split('/').at(-1)))).toEqual(
    new Set(['sh', 'cpn', 'node', 'readlink', 'ls']),
  );
  const tools = started.filter((exec) => !ours.includes(exec));
  const names = [...new Set(tools.map(({ path: program }) => program.split('/').at(-1)))];
  expect(names).toEqual(expect.arrayContaining(['ip', 'wg', 'nft']));
  expect(names.filter((name) => !['ip', 'wg', 'nft', 'wireguard-go', 'sh'].includes(`${name}`))).toEqual([]);
  for (const { path: program, env: given } of tools) {
    expect(program).toMatch(/^\/usr\/s?bin\//);
    // With these wireguard-go configures itself when it starts again in the background.
    expect(given.filter((each) => !each.startsWith('WG_')).toSorted()).toEqual([
      'LC_ALL=C',
      'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    ]);
  }
});
