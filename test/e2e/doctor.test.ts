import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { builtProgram } from '../lab/built-program.ts';
import { startDaemon } from '../lab/daemon.ts';
import type { Host } from '../lab/host.ts';
import { Canaries } from '../secrets/canaries.ts';
import { join, type Office, patiently, plan, startOffice, status } from './office.ts';

interface Finding {
  readonly check: string;
  readonly verdict: 'ok' | 'note' | 'problem';
  readonly looked_at: string;
  readonly found: string;
  readonly remedy: string | null;
}

let office: Office;
let connector: Host;
let edge: Host;
let hub: string;

beforeAll(async () => {
  office = await startOffice();
  connector = await office.lab.addHost('connector', { address: '203.0.113.11/24' });
  hub = (await join(office, connector, '--type', 'connector', '--endpoint', '203.0.113.11:51820')).address;
  edge = await office.lab.addHost('edge', { address: '203.0.113.12/24' });
  await join(office, edge, '--endpoint', '203.0.113.12:51820');
  await connector.cpn(['reconcile']);
  await edge.ping(hub, patiently);
});

afterAll(() => office?.lab.stop());

async function examine(host: Host, wrapper: readonly string[] = []) {
  const argv = [...wrapper, await builtProgram(), 'doctor', '--json'];
  const { stdout, exitCode } = await host.exec(argv, { allowFailure: true, timeoutMs: 60_000 });
  const { healthy, findings } = JSON.parse(stdout) as { healthy: boolean; findings: Finding[] };
  const problems = findings.filter(({ verdict }) => verdict === 'problem');
  expect([healthy, exitCode]).toEqual(problems.length === 0 ? [true, 0] : [false, 3]);
  return { findings, problems, checks: new Set(findings.map(({ check }) => check)) };
}

describe('cpn doctor', () => {
  it('finds nothing wrong with healthy hosts, and changes nothing', async () => {
    const before = await edge.state();
    const { problems, checks, findings } = await examine(edge);
    expect(problems).toEqual([]);
    expect([...checks].join(' ')).toBe(
      'tools kernel privileges managers disk files state daemon api clock dns ports forwarding network pins key mtu',
    );
    expect(
      findings.find(({ check, looked_at }) => check === 'mtu' && looked_at.includes('through cpn0')),
    ).toMatchObject({
      verdict: 'ok',
      looked_at: `packets of 1420 bytes to connector (${hub}) through cpn0`,
    });
    expect(await edge.state()).toBe(before);
    await using daemon = await startDaemon(connector);
    await daemon.awaitLog('that it reconciles the network', ({ interface: link }) => link === 'cpn0');
    const other = await examine(connector);
    await daemon.stop();
    expect(other.findings.find(({ check }) => check === 'daemon')).toMatchObject({
      verdict: 'ok',
      found: expect.stringMatching(/^is running/),
    });
    expect(other.problems).toEqual([]);
    expect(other.checks).toContain('forwarding');
  });

  it('finds an MTU black hole, and a remedy that helps', async () => {
    const rules = 'table inet hole { chain out { type filter hook output priority 0; udp length > 1300 drop; }; }';
    await edge.exec(['nft', '-f', '-'], { input: rules });
    const [hole, ...others] = (await examine(edge)).problems;
    expect(others).toEqual([]);
    expect(hole).toMatchObject({ check: 'mtu', found: expect.stringContaining('MTU black hole') });
    const [, mtu] = /^"cpn run" lowers .*: cpn set cpn0 --mtu (\d+), on both ends$/.exec(hole?.remedy ?? '') ?? [];
    expect(Number(mtu)).toBeGreaterThan(1230);
    await edge.cpn(['set', 'cpn0', '--mtu', `${mtu}`]);
    expect((await status(edge)).mtu).toBe(Number(mtu));
    expect((await examine(edge)).problems).toEqual([]);
    await edge.exec(['nft', 'delete', 'table', 'inet', 'hole']);
    await edge.cpn(['set', '--mtu', 'auto']);
    expect((await status(edge)).mtu).toBe(1420);
  });

  it('reports without privileges what it can check, and a file that others may read', async () => {
    const config = path(edge.configDir, 'cpn0.conf');
    await chmod(config, 0o644);
    const bare = ['setpriv', '--bounding-set', '-net_admin', '--inh-caps', '-net_admin'];
    const { problems } = await examine(edge, bare);
    await chmod(config, 0o600);
    expect(problems).toMatchObject([
      { check: 'privileges', remedy: expect.stringContaining('sudo cpn doctor') },
      { check: 'files', looked_at: config, remedy: expect.stringContaining(`chmod 600 ${config}`) },
    ]);
  });

  it('checks the host without a control plane', async () => {
    await office.controlPlane.host.links[0]?.unplug();
    try {
      const { problems, checks } = await examine(edge);
      expect(problems).toMatchObject([{ check: 'api', remedy: expect.stringContaining('curl -v') }]);
      expect(checks).toContain('mtu');
    } finally {
      await office.controlPlane.host.links[0]?.restore();
    }
  });
});

describe('cpn set', () => {
  it('shows with --dry-run what it would change, and changes nothing', async () => {
    const before = await edge.state();
    const { stdout, exitCode } = await edge.cpn(['set', '--listen-port', '51999', '--dry-run', '--json'], {
      allowFailure: true,
    });
    expect(exitCode).toBe(3);
    expect(JSON.parse(stdout).networks[0].changes).toMatchObject([
      { kind: 'file' },
      { kind: 'interface', after: { 'listen port': 51999 } },
    ]);
    expect(await edge.state()).toBe(before);
  });

  it('changes endpoint and port while a daemon runs, and the peers use the new endpoint', async () => {
    await using daemon = await startDaemon(edge);
    await daemon.awaitLog('that it reconciles the network', ({ interface: link }) => link === 'cpn0');
    await edge.cpn(['set', '--endpoint', '203.0.113.12:51999', '--name', 'edge of the world']);
    const { stdout } = await office.controlPlane.cpn(['network', 'show', 'office', '--json']);
    expect(JSON.parse(stdout).peers).toContainEqual(
      expect.objectContaining({ name: 'edge of the world', endpoint: '203.0.113.12:51999' }),
    );
    expect((await status(edge)).listen_port).toBe(51999);
    await connector.cpn(['reconcile']);
    await edge.ping(hub, patiently);
    expect((await status(connector)).peers[0]).toMatchObject({ endpoint: '203.0.113.12:51999' });
    expect((await examine(edge)).problems).toEqual([]);
    await daemon.stop();
    expect(await plan(edge)).toEqual({ exitCode: 0, changes: [] });
    expect((await status(edge)).listen_port).toBe(51999);
  });

  it('gives a network secret to hosts that have joined', async () => {
    for (const host of [edge, connector]) {
      await writeFile(path(host.homeDir, 'secret'), secret, { mode: 0o600 });
      await host.cpn(['set', '--yes', '--network-secret-file', path(host.homeDir, 'secret')]);
    }
    await edge.cpn(['reconcile']);
    expect((await edge.ping(hub, patiently)).received).toBe(1);
    expect(await readFile(path(edge.configDir, 'cpn0.conf'), 'utf8')).toContain('PresharedKey = ');
  });
});

const secret = randomBytes(48).toString('base64');

describe('cpn debug bundle', () => {
  it('holds no secret, lists its contents, and overwrites nothing', async () => {
    const canaries = new Canaries();
    canaries.addText('network secret as it was given', secret);
    canaries.addState(await readFile(path(edge.stateDir, 'cpn0.json'), 'utf8'));
    const config = await readFile(path(edge.configDir, 'cpn0.conf'), 'utf8');
    for (const [, key = ''] of config.matchAll(/^PresharedKey = (.*)$/gm)) canaries.addKey('preshared key', key);
    const file = path(edge.homeDir, 'bundle.tar.gz');
    const { stderr } = await edge.cpn(['debug', 'bundle', file]);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const folder = path(edge.homeDir, 'unpacked');
    await mkdir(folder);
    await edge.exec(['tar', '-xzf', file, '-C', folder]);
    expect(await canaries.findInFiles(folder)).toEqual([]);
    const read = (name: string) => readFile(path(folder, 'cpn-debug', name), 'utf8');
    const { stdout: listed } = await edge.exec(['tar', '-tzf', file]);
    const names = listed
      .trim()
      .split('\n')
      .map((name) => name.replace('cpn-debug/', ''));
    for (const name of names) expect(stderr).toContain(`  ${name}\n`);
    const { findings }: { findings: Finding[] } = JSON.parse(await read('doctor.json'));
    expect(findings.filter(({ verdict }) => verdict === 'problem')).toEqual([]);
    expect(JSON.parse(await read('state/cpn0.json'))).toMatchObject({ keyPair: { privateKey: '[secret]' } });
    expect(JSON.parse(await read(`explain/${hub}.json`)).stops_at).toBeNull();
    expect(await read('host/wg-show.txt')).toContain('private key: (hidden)');

    const again = await edge.cpn(['debug', 'bundle', file], { allowFailure: true });
    expect(again).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('already exists') });
  });
});
