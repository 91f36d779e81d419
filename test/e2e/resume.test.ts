import { readFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Joined, makeKey } from '../lab/control-plane.ts';
import type { Host } from '../lab/host.ts';
import { type Office, plan, startOffice } from './office.ts';

let office: Office;
let connector: Host;
let hosts = 0;

beforeAll(async () => {
  office = await startOffice();
  // A peer to dial, so that a join waits for a handshake; it does not answer, so that the join can be killed meanwhile.
  connector = await newHost('connector');
  const key = await makeKey(office.controlPlane, 'office', 'connector', '--type', 'connector');
  await connector.cpn(['join', '-', ...office.api, '--type', 'connector', '--endpoint', `${connector.address}:51820`], {
    input: key,
  });
}, 60_000);

afterAll(() => office?.lab.stop());

function newHost(name: string): Promise<Host> {
  hosts += 1;
  return office.lab.addHost(name, { address: `203.0.113.${hosts + 10}/24` });
}

const argv = () => ['join', '-', ...office.api, '--json'];
const quick = () => [...argv(), '--wait', '0'];

async function peers(): Promise<{ id: number; public_key: string; address: string }[]> {
  return JSON.parse((await office.controlPlane.cpn(['network', 'show', 'office', '--json'])).stdout).peers;
}

describe('a join that was cut short', () => {
  it.each([/making the key pair/, /enrolling/, /bringing cpn0 up/, /waiting for a first handshake/])(
    'by kill -9 at "%s" goes on to one peer and one address',
    async (step) => {
      const host = await newHost(`killed-${hosts}`);
      const key = await makeKey(office.controlPlane, 'office', host.name);
      const before = await peers();
      const joining = await host.spawnCpn(argv(), { input: key });
      await joining.waitForLine(step, 20_000);
      joining.signal('SIGKILL');
      await joining.exited;
      const { stdout } = await host.cpn(quick(), { input: key });
      const joined: Joined = JSON.parse(stdout);
      const added = (await peers()).filter(({ id }) => !before.some((peer) => peer.id === id));
      expect(added).toMatchObject([{ id: joined.peer.id, address: joined.address, public_key: joined.public_key }]);
      expect(await plan(host)).toEqual({ exitCode: 0, changes: [] });
    },
  );

  it('by a lost reply sends the same keys again, and uses the key up only once', async () => {
    const host = await newHost('unlucky');
    const key = await makeKey(office.controlPlane, 'office', host.name);
    const before = await peers();
    const proxy = host.spawn(['node', path(import.meta.dirname, 'lossy-proxy.ts'), '8080', '203.0.113.1', '8787', '1']);
    await proxy.waitForLine(/listening/);
    const { stdout, stderr } = await host.cpn(
      ['join', '-', '--api', 'http://127.0.0.1:8080', '--json', '--wait', '0'],
      {
        input: key,
      },
    );
    await proxy.waitForLine(/lost a reply/);
    expect(stderr).toContain('retrying in');
    const added = (await peers()).filter(({ id }) => !before.some((peer) => peer.id === id));
    expect(added).toMatchObject([{ public_key: JSON.parse(stdout).public_key }]);
  });

  it('is cleared by leave', async () => {
    const host = await newHost('quitter');
    const before = await host.state();
    const key = await makeKey(office.controlPlane, 'office', host.name);
    const joining = await host.spawnCpn(argv(), { input: key });
    await joining.waitForLine(/enrolling/, 20_000);
    joining.signal('SIGKILL');
    await joining.exited;
    expect(await host.state()).not.toBe(before);
    await host.cpn(['leave', '--yes', '--verify']);
    expect(await host.state()).toBe(before);
  });

  it('by SIGINT prints what to type next, and leave warns of a peer that may stay', async () => {
    const host = await newHost('interrupted');
    const nowhere = ['join', '-', '--api', 'http://127.0.0.1:9'];
    const joining = await host.spawnCpn(nowhere, { input: `cpn_${'x'.repeat(40)}` });
    await joining.waitForLine(/enrolling/, 20_000);
    joining.signal('SIGINT');
    expect(await joining.exited).toMatchObject({
      signal: 'SIGINT',
      stderr: expect.stringMatching(/interrupted; type "cpn join" with the same key to continue it, or "cpn leave"/),
    });
    const { stderr } = await host.cpn(['leave', '--yes', '--verify']);
    expect(stderr).toMatch(/the join of cpn0 was not finished; a peer interrupted with the public key \S+= may stay/);
  });

  it('does not enrol again when it is repeated after it was done', async () => {
    const host = await newHost('twice');
    const key = await makeKey(office.controlPlane, 'office', host.name);
    const join = [...quick(), '--endpoint', `${host.address}:40000`];
    const first: Joined = JSON.parse((await host.cpn(join, { input: key })).stdout);
    const before = await host.state();
    const second: Joined = JSON.parse((await host.cpn(join, { input: key })).stdout);
    expect(second).toEqual(first);
    expect((await host.state()).replace(/lock\.pid.*/, '')).toBe(before.replace(/lock\.pid.*/, ''));
  });

  it('waits its turn when two run at once', async () => {
    const host = await newHost('eager');
    const key = await makeKey(office.controlPlane, 'office', host.name);
    const both = await Promise.all([host.cpn(quick(), { input: key }), host.cpn(quick(), { input: key })]);
    const [first, second] = both.map(({ stdout }) => JSON.parse(stdout) as Joined);
    expect(second?.public_key).toBe(first?.public_key);
  });
});

describe('the private key', () => {
  it('is on disk, synced with its folder, before the enrolment is sent', async () => {
    const { calls } = await traceJoin(await newHost('traced'), ['trace=fsync,rename,write,writev,sendto']);
    const first = (pattern: RegExp, from = 0) => calls.findIndex((call, index) => index >= from && pattern.test(call));
    const file = first(/fsync\(.*cpn0\.json\..*tmp/);
    const renamed = first(/rename\(.*cpn0\.json"/, file);
    const folder = first(/fsync\(.*\/state>/, renamed);
    const sent = first(/"POST \//);
    expect([file >= 0, file < renamed, renamed < folder, folder < sent]).toEqual([true, true, true, true]);
  });

  it('and the enrolment key are in no argument and no environment of a child, in no output and in no log', async () => {
    const host = await newHost('watched');
    const { calls, key, output } = await traceJoin(host, ['trace=execve', '-v', '-s', '65536']);
    const started = calls.join('\n');
    expect(started).toMatch(/execve\("[^"]*\/wg"/);
    expect(output.stderr).toContain('applying a step');
    const others = [['status'], ['plan'], ['status', '--json']].map((args) => host.cpn(args, { env: loud }));
    const outputs = [output, ...(await Promise.all(others))].flatMap(({ stdout, stderr }) => [stdout, stderr]);
    const state = JSON.parse(await readFile(path(host.stateDir, 'cpn0.json'), 'utf8'));
    const secrets: string[] = [state.privateKey, key, state.membership.accessToken];
    expect(secrets.every((secret) => secret.length > 40)).toBe(true);
    for (const secret of secrets) expect([started, ...outputs].filter((text) => text.includes(secret))).toEqual([]);
  });
});

const loud = { CPN_LOG_LEVEL: 'trace' };

/** Joins under strace, which would follow wireguard-go for ever, and is stopped once the join reports its end. */
async function traceJoin(host: Host, expressions: string[]) {
  const key = await makeKey(office.controlPlane, 'office', host.name);
  const trace = path(host.folder, 'trace');
  const program = path(import.meta.dirname, '../../dist/cpn.js');
  const strace = ['strace', '-I1', '-f', '-y', '-e', ...expressions, '-o', trace, program, ...quick()];
  const tracing = host.spawn(strace, { input: key, env: loud });
  await tracing.waitForLine(/^}$/, 40_000);
  tracing.signal('SIGTERM');
  await tracing.exited;
  return { key, output: tracing.output, calls: (await readFile(trace, 'utf8')).split('\n') };
}
