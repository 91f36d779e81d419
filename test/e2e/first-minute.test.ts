import { writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { builtProgram } from '../lab/built-program.ts';
import { makeKey } from '../lab/control-plane.ts';
import type { Host } from '../lab/host.ts';
import type { Process } from '../lab/process.ts';
import { onTerminal } from '../lab/terminal.ts';
import { join, type Office, startOffice } from './office.ts';

let office: Office;
let host: Host;
let bare: Host;
let daemon: Process;
let program: string;
let api: string;
const styled = new RegExp(`${String.fromCharCode(27)}\\[\\d+m`);
const moved = new RegExp(`${String.fromCharCode(27)}\\[[A-K]`);

beforeAll(async () => {
  program = await builtProgram();
  office = await startOffice();
  api = office.api.join(' ');
  const edge = await office.lab.addHost('edge-1', { address: '203.0.113.11/24' });
  await join(office, edge, '--type', 'connector', '--endpoint', '203.0.113.11:51820');
  daemon = await edge.spawnCpn(['run']);
  host = await office.lab.addHost('web-1', { address: '203.0.113.22/24' });
  bare = await office.lab.addHost('bare', { address: '203.0.113.33/24' });
  await writeKey(host);
  await daemon.waitForLine(/reconciling the network/);
}, 60_000);

afterAll(() => office?.lab.stop());

async function writeKey(of: Host): Promise<void> {
  await writeFile(path(of.homeDir, 'key'), await makeKey(office.controlPlane, 'office', of.name), { mode: 0o600 });
}

const type = (on: Host, line: string, env = {}) => onTerminal(on, program, line, { env });

describe('a join on a terminal', () => {
  it('shows its steps as they go, and what to type next', async () => {
    const { exitCode, raw, rows } = await type(host, `cpn join file:key ${api} --endpoint 203.0.113.22:51820`);
    const file = path(host.configDir, 'cpn0.conf');
    const steps = [
      'checking this host',
      'making the key pair',
      `enrolling web-1 at ${office.controlPlane.url}`,
      'bringing cpn0 up as 10.77.0.2',
      `writing ${file}`,
      'waiting for a first handshake with edge-1',
    ];
    expect(rows.map((row) => row.replace(/ \(\d+\.\d s\)$/, ''))).toEqual([
      ...steps.map((step) => `✓ ${step}`),
      'joined office as web-1: cpn0 has 10.77.0.2',
      'edge-1 answered',
      'next:',
      '  cpn status cpn0  peers, routes and drift',
      '  ping 10.77.0.1   edge-1',
      '  cpn run          reconciles the network while it runs',
    ]);
    for (const step of steps) expect(raw).toContain(`… ${step}`);
    expect(raw).toMatch(styled);
    expect(exitCode).toBe(0);
  });

  it('does not suggest a daemon where one runs, nor a ping of a peer that did not answer', async () => {
    const running = await host.spawnCpn(['run']);
    await running.waitForLine(/reconciling the network/);
    const { rows } = await type(host, `cpn join file:key ${api} --endpoint 203.0.113.22:51820 --wait 0`);
    expect(rows.slice(rows.indexOf('next:'))).toEqual([
      'next:',
      '  cpn status cpn0                peers, routes and drift',
      '  cpn wait cpn0 --for handshake  returns after the first handshake',
    ]);
    running.signal('SIGTERM');
    await running.exited;
  });

  it.each([
    ['without colours where NO_COLOR says so', { NO_COLOR: '1' }, /… making the key pair/, styled],
    ['a line each where nothing can be drawn over', { TERM: 'dumb' }, /^· making the key pair\r$/m, moved],
  ])('%s', async (_what, env, shown, hidden) => {
    await writeKey(bare);
    const { exitCode, raw } = await type(bare, `cpn join file:key ${api} --wait 0 && cpn leave --yes`, env);
    expect(raw).toMatch(shown);
    expect(raw).not.toMatch(hidden);
    expect(exitCode).toBe(0);
  });

  it('is quiet lines in a pipe', async () => {
    const key = `file:${path(host.homeDir, 'key')}`;
    const { stdout, stderr } = await host.cpn(['join', key, ...office.api, '--wait', '0']);
    expect(stderr.split('\n').filter((line) => line.startsWith('·'))).toEqual([
      '· checking this host',
      '· continuing the join of cpn0',
      '· bringing cpn0 up as 10.77.0.2',
      `· writing ${path(host.configDir, 'cpn0.conf')}`,
    ]);
    expect(stdout + stderr).not.toMatch(/\p{Cc}\[|next:/u);
  });

  it('marks a wait that came to nothing', async () => {
    // The peers receive no map with the new host any more.
    daemon.signal('SIGTERM');
    await daemon.exited;
    await writeKey(bare);
    const { rows } = await type(bare, `cpn join file:key ${api} --wait 1; cpn leave --yes`);
    expect(rows.map((row) => row.replace(/ \(.*/, ''))).toContain('– waiting for a first handshake with edge-1, web-1');
    expect(rows).toContain('  cpn wait cpn0 --for handshake  returns after the first handshake');
  });
});

describe('without the key, a join on a terminal prompts for it', () => {
  /** In Debian's sh, which is dash. */
  const paste = async (line: string, typed: string, prompt = /Enrolment key/) =>
    onTerminal(bare, program, line, { dialogue: [[prompt, typed]] });

  it.each([
    ['without KEY', '', '\r'],
    ['with -', '- ', '\r'],
    ['with a line feed, as of an Enter before the prompt', '', '\n'],
  ])('%s', async (_what, argument, enter) => {
    const key = await makeKey(office.controlPlane, 'office', bare.name);
    const line = `cpn join ${argument}${api} --wait 0 && cpn leave --yes`;
    const { exitCode, raw, rows } = await paste(line, `${key}${enter}`);
    expect(exitCode, raw).toBe(0);
    expect(rows.join()).toContain('joined office as bare');
    expect(raw).not.toContain(key);
  });

  it('it prompts only after the other mistakes are named', async () => {
    const { exitCode, rows } = await type(bare, `cpn join ${api} --endpoint nowhere`);
    expect([exitCode, rows.length]).toEqual([2, 1]);
    expect(rows[0]).toMatch(/^cpn: --endpoint/);
  });

  it.each([
    ['nothing', '\r', /no enrolment key was given; an admin makes one with "cpn key create"$/],
    ['Ctrl-C', '\x03', /no enrolment key was given/],
    ['Ctrl-D', '\x04', /no enrolment key was given/],
    ['half a key', 'cps_canary\r', /must begin with "cpn_"; give all of what "cpn key create" showed$/],
    ['two words', 'cpn_canary canary\r', /key contains whitespace; give it alone/],
  ])('and ends with the fault after %s', async (_what, typed, message) => {
    const { exitCode, raw, rows } = await paste(`cpn join ${api}`, typed);
    expect(rows.at(-1)).toMatch(message);
    expect(exitCode).toBe(2);
    expect(raw).not.toContain('canary');
  });

  it('it does not prompt where a file says how to join', async () => {
    await writeFile(path(bare.homeDir, 'join.conf'), `api = ${office.controlPlane.url}\ninsecure-http = yes\n`);
    const { exitCode, rows } = await type(bare, 'cpn join --from-config join.conf');
    expect(rows.at(-1)).toMatch(/key is missing; give it as file:PATH/);
    expect(exitCode).toBe(2);
  });
});

describe('a mistake on a terminal ends with the fault and the remedy', () => {
  // One for all of them: where wg finds the socket of one that was killed, it may remove the socket of the next.
  beforeAll(async () => {
    bare.spawn(['wireguard-go', '-f', 'theirs0']);
    const listen = 'until wg set theirs0 listen-port 51999 2>/dev/null; do sleep 0.1; done; ip link set theirs0 up';
    await bare.exec(['sh', '-c', listen]);
  });

  const wrongly = (more: string) => `cpn join ${more}`;
  it.each<[string, () => string, number, RegExp, string?]>([
    [
      'a key file named as if it were the key',
      () => wrongly(`key ${api}`),
      2,
      /must begin with "cpn_"; where that is a file, write file:key$/,
    ],
    [
      'half a key',
      () => wrongly(`cps_canary ${api}`),
      2,
      /must begin with "cpn_"; give all of what "cpn key create" showed$/,
    ],
    ['two keys', () => wrongly(`'cpn_canary cpn_canary' ${api}`), 2, /key contains more than one key; give it alone/],
    [
      'a key with a space of no width',
      () => wrongly(`cpn_\u200bcanary ${api}`),
      2,
      /key has an invisible character \(U\+200B\); give it alone/,
    ],
    ['a key in quotation marks', () => wrongly(`'"cpn_canary"' ${api}`), 2, /key is in quotation marks; give it alone/],
    [
      'no key, and no terminal to prompt on',
      () => `${wrongly(api)} </dev/null`,
      2,
      /key is missing; give it as file:PATH.*"cpn key create"$/,
    ],
    [
      'a key file that is not there',
      () => wrongly(`file:nokey ${api}`),
      2,
      /cannot be read from nokey \(ENOENT\); check the path/,
    ],
    ['an empty key file', () => wrongly(`file:/dev/null ${api}`), 2, /key in \/dev\/null is empty/],
    [
      'a key that does not exist',
      () => wrongly(`cpn_${'x'.repeat(43)} ${api}`),
      4,
      /\(401\): the enrolment key is unknown; check that the whole key was given, or make a new key with "cpn key create"$/,
      'enrolling bare at http://203.0.113.1:8787',
    ],
    [
      'a key that is cut',
      () => wrongly(`cpn_${'x'.repeat(16)} ${api}`),
      4,
      /is unknown; it has 20 characters, and a key of a cpn control plane has 47: check whether part of it is missing, or/,
      'enrolling bare at http://203.0.113.1:8787',
    ],
    [
      'https where http is spoken',
      () => wrongly(`file:key ${api.replace('http:', 'https:')}`),
      5,
      /the TLS handshake failed .*: https was tried, and the port may serve plain http/,
      'enrolling bare at https://203.0.113.1:8787',
    ],
    [
      'a path that is none',
      () => wrongly(`file:key ${api.replace('8787', '8787/nowhere')}`),
      4,
      /\(404\): there is no such path; check that --api names the control plane$/,
      'enrolling bare at http://203.0.113.1:8787/nowhere',
    ],
    [
      'a port that another program has',
      () => wrongly(`file:key ${api} --listen-port 51999`),
      1,
      /cpn0 cannot listen: UDP port 51999 is in use; choose another with --listen-port, or stop its process \(find it with "ss -lunp" or "wg show"\)$/,
      'checking this host',
    ],
    [
      'a second join as the same interface',
      () => `cpn join file:key ${api} --wait 0; ${wrongly(`cpn_${'y'.repeat(40)} ${api} --interface cpn0`)}`,
      2,
      /this host has joined as cpn0 already; "cpn leave cpn0" first, or choose another with --interface$/,
      'checking this host',
    ],
    [
      'a second join of the same network',
      () => wrongly(`file:key ${api}`),
      2,
      /this host is in network office already, as cpn0; "cpn leave cpn0" first, or "cpn leave cpn0 --keep-peer" if this host is the copy/,
      'enrolling bare at http://203.0.113.1:8787',
    ],
    [
      'no such network',
      () => 'cpn status elsewhere',
      2,
      /has not joined a network "elsewhere"; joined: cpn0; name one of these$/,
    ],
  ])('%s', async (_what, line, code, message, failed) => {
    await writeKey(bare);
    const { exitCode, rows } = await type(bare, line());
    expect(rows.at(-1)).toMatch(message);
    expect(rows.at(-1)).toMatch(/^cpn: /);
    expect(exitCode).toBe(code);
    expect(rows.filter((row) => row.startsWith('✗')).map((row) => row.slice(2))).toEqual(
      failed === undefined ? [] : [expect.stringContaining(failed)],
    );
    expect(rows.join('\n')).not.toContain('canary');
  });

  it('a command for all networks reports that there is none', async () => {
    const lone = await office.lab.addHost('lone', { address: '203.0.113.44/24' });
    const { rows } = await type(lone, 'for each in status plan reconcile up down leave; do cpn $each; done');
    expect(rows).toEqual(Array(6).fill('no network is joined; join one with "cpn join"'));
  });
});
