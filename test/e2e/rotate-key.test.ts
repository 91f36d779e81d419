import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { DataCenter } from './data-center.ts';
import { patiently, plan, status } from './office.ts';

const rounds = 2;
/** Seconds between two pings: how finely a loss is measured. */
const fine = 0.05;

/** An origin and a connector that can be dialled, and a laptop behind a NAT that cannot; all of them receive changes at once. */
let center: DataCenter;
let origin: Host;
let connector: Host;
let laptop: Host;
/** The longest time without an answer in each round, in seconds, by the host that changed its key and the pair that pinged meanwhile. */
const losses = new Map<string, number[]>();

beforeAll(async () => {
  center = await DataCenter.start();
  connector = await center.addConnector(1, '--pin', 'strict');
  origin = await center.addOrigin('origin', '203.0.113.22', '--pin', 'strict');
  laptop = await center.addLaptop('laptop', '203.0.113.40', '--pin', 'strict');
  await center.awaitAnswers(laptop, connector, origin);
  expect(await origin.ping(center.address(connector), patiently)).toMatchObject({ received: 1 });
}, 120_000);

afterAll(async () => {
  process.stdout.write(`changes of keys, in seconds without an answer\n${formatTable()}\n`);
  await center?.stop();
});

/** Changes a host's key while pairs of hosts ping each other, and waits until all of these go on. */
async function rotateWhilePinging(host: Host, pairs: readonly (readonly [Host, Host])[]) {
  const flows = pairs.map(([from, to]) => ({
    name: `${host.name} changes, ${from.name} pings ${to.name}`,
    ping: from.spawn(['ping', '-n', '-D', '-i', String(fine), '-c', '2000', center.address(to)]),
  }));
  for (const { ping } of flows) await ping.waitForLine(/icmp_seq=\d+ ttl/);
  const { stdout } = await host.cpn(['rotate-key', '--json']);
  for (const { name, ping } of flows) {
    const seen = ping.output.stdout.length;
    await eventually(`${name} goes on`, () => ping.output.stdout.length > seen + 600);
    const { stdout: replies } = await ping.stop();
    losses.set(name, [...(losses.get(name) ?? []), longestPause(replies)]);
  }
  return JSON.parse(stdout).networks[0];
}

/** The longest time between two answers, in seconds. */
function longestPause(stdout: string): number {
  const times = [...stdout.matchAll(/^\[(\d+\.\d+)\] \d+ bytes from/gm)].map(([, time]) => Number(time));
  return Math.max(...times.slice(1).map((time, index) => time - (times[index] ?? time)));
}

function formatTable(): string {
  const rows = [...losses].map(([name, seconds]) => {
    const sorted = seconds.toSorted((a, b) => a - b);
    const at = (share: number) => (sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN).toFixed(2).padStart(7);
    return `${name.padEnd(44)} ${String(sorted.length).padStart(4)} ${at(0.01)} ${at(0.5)} ${at(1)}`;
  });
  return [`${'key and flow'.padEnd(44)} runs     min  median     max`, ...rows].join('\n');
}

/** The key of a peer in a status. */
interface PeerPinned {
  readonly name: string;
  readonly public_key: string;
  readonly pin: string;
}

const listed = (host: Host) => center.listed(host);

async function privateKeys(host: Host): Promise<{ state: string; file: string | undefined; device: string }> {
  const { privateKey } = JSON.parse(await readFile(join(host.stateDir, 'cpn0.json'), 'utf8'));
  const file = /PrivateKey = (\S+)/.exec(await readFile(join(host.configDir, 'cpn0.conf'), 'utf8'))?.[1];
  const device = (await host.exec(['wg', 'show', 'cpn0', 'private-key'])).stdout.trim();
  return { state: privateKey, file, device };
}

async function expectSettled(host: Host, publicKey: string): Promise<void> {
  const { state, file, device } = await privateKeys(host);
  expect([file, device]).toEqual([state, state]);
  expect(await listed(host)).toMatchObject({ public_key: publicKey });
  // The daemon takes part: a peer that was silent is in service again after a healthy minute.
  let last: unknown;
  await eventually(
    'no warning and no change is left',
    async () => {
      const { public_key, warnings } = await status(host);
      const { exitCode, changes } = await plan(host);
      last = { public_key, warnings, exitCode, changes };
      return public_key === publicKey && warnings === undefined && exitCode === 0;
    },
    { timeoutMs: 90_000 },
  ).catch((error) => {
    throw new Error(`${error.message}: ${JSON.stringify(last)}`);
  });
}

describe('cpn rotate-key', () => {
  it(`${rounds} times on either side: the tunnel goes on, and strict peers take the proven key`, {
    timeout: 300_000,
  }, async () => {
    const flows = {
      origin: [
        [connector, origin],
        [laptop, origin],
        [origin, laptop],
      ],
      laptop: [
        [laptop, origin],
        [origin, laptop],
      ],
    } as const;
    for (let round = 0; round < rounds; round += 1) {
      for (const [host, pairs] of [
        [origin, flows.origin],
        [laptop, flows.laptop],
      ] as const) {
        const before = await listed(host);
        const report = await rotateWhilePinging(host, pairs);
        expect(report).toMatchObject({ rotated: true, answered: expect.any(String) });
        expect(report.public_key).not.toBe(before.public_key);
        if (round === 0) await expectSettled(host, report.public_key);
        await eventually(`the connector pins the new key of ${host.name}`, async () => {
          const seen: PeerPinned[] = (await status(connector)).peers;
          return seen.some(
            ({ name, public_key, pin }) => name === host.name && public_key === report.public_key && pin === 'ok',
          );
        });
      }
    }
    expect(await status(origin)).toMatchObject({ key_since: expect.stringMatching(/^20/) });
  });

  it('changes the keys of all hosts at once', async () => {
    const hosts = [connector, origin, laptop];
    const before = await Promise.all(hosts.map(async (host) => (await listed(host)).public_key));
    const reports = await Promise.all(hosts.map((host) => host.cpn(['rotate-key', '--json'])));
    const keys = reports.map(({ stdout }) => JSON.parse(stdout).networks[0].public_key);
    expect(new Set([...before, ...keys]).size).toBe(6);
    expect(await Promise.all(hosts.map(async (host) => (await listed(host)).public_key))).toEqual(keys);
    for (const [from, to] of [
      [origin, connector],
      [laptop, connector],
      [laptop, origin],
    ] as const) {
      expect(await from.ping(center.address(to), patiently)).toMatchObject({ received: 1 });
    }
  });

  it('goes back to the old key where the peers never receive the new one', { timeout: 240_000 }, async () => {
    const before = await listed(origin);
    for (const host of [connector, laptop]) await center.daemon(host).stop();
    const { exitCode, stderr } = await origin.cpn(['rotate-key', '--confirm-within', '4s'], { allowFailure: true });
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('rolled back') });
    expect(await origin.ping(center.address(connector), patiently)).toMatchObject({ received: 1 });
    await expectSettled(origin, before.public_key);
    for (const host of [connector, laptop]) center.daemons.set(host, await startDaemon(host));
    await eventually('the laptop answers', async () => (await origin.ping(center.address(laptop))).received === 1, {
      timeoutMs: 60_000,
    });
  });

  it('is done by the daemon when the key has its age, and not before', { timeout: 240_000 }, async () => {
    const before = await listed(origin);
    await center.daemon(origin).stop();
    const path = join(origin.stateDir, 'cpn0.json');
    const state = JSON.parse(await readFile(path, 'utf8'));
    state.options.rotateEvery = 3_600;
    state.keySince = new Date(Date.now() - 2 * 3_600_000).toISOString();
    await writeFile(path, JSON.stringify(state));
    const daemon: Daemon = await startDaemon(origin, '--interval', '2');
    center.daemons.set(origin, daemon);
    const { key } = await daemon.awaitLog('a new key', ({ msg }) => msg === 'key changed', 0, 60_000);
    expect(key).not.toBe(before.public_key);
    await expectSettled(origin, String(key));
    expect(await origin.ping(center.address(laptop), patiently)).toMatchObject({ received: 1 });
  });
});
