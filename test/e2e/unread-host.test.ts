import { chmod, writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { join, type Office, startOffice, status } from './office.ts';

/** A host whose `ip` prints more than cpn reads, as it did with a full routing table. */
let office: Office;
let origin: Host;
let removed: string;
let realIp: string;

const peersOf = async (host: Host) => (await host.exec(['wg', 'show', 'cpn0', 'peers'])).stdout.trim().split('\n');

beforeAll(async () => {
  office = await startOffice();
  const edge = await office.lab.addHost('edge', { address: '203.0.113.11/24' });
  origin = await office.lab.addHost('origin', { address: '203.0.113.12/24' });
  await join(office, edge, '--type', 'connector', '--endpoint', '203.0.113.11:51820');
  for (const number of [13, 14]) {
    const host = await office.lab.addHost(`server-${number}`, { address: `203.0.113.${number}/24` });
    await join(office, host, '--endpoint', `203.0.113.${number}:51820`);
    removed = (await host.exec(['wg', 'show', 'cpn0', 'public-key'])).stdout.trim();
  }
  await join(office, origin, '--endpoint', '203.0.113.12:51820');
  realIp = path(origin.folder, 'ip');
  const script = path(origin.folder, 'overflowing-ip');
  await writeFile(
    script,
    `#!/bin/sh\ncase "$*" in *-json*) exec head -c 68000000 /dev/zero ;; esac\nexec ${realIp} "$@"\n`,
  );
  await chmod(script, 0o755);
  await origin.exec(['sh', '-c', `cp "$(readlink -f "$(command -v ip)")" ${realIp}`]);
}, 90_000);

afterAll(() => office?.lab.stop());

it('a host that cannot be observed drops a removed peer, says what it cannot read, and catches up', async () => {
  const daemon = await startDaemon(origin, '--interval', '5');
  try {
    await eventually('the daemon waits', async () => (await status(origin)).sync.mode === 'push');
    expect(await peersOf(origin)).toContain(removed);
    await origin.exec(['sh', '-c', `mount --bind ${origin.folder}/overflowing-ip "$(readlink -f "$(command -v ip)")"`]);
    await office.controlPlane.cpn(['peer', 'remove', 'office', 'server-14', '--yes']);
    await eventually('the peer is removed', async () => !(await peersOf(origin)).includes(removed), {
      timeoutMs: 40_000,
    });
    expect(await peersOf(origin)).toHaveLength(2);

    const seen = await status(origin);
    expect(seen).toMatchObject({ state: 'degraded' });
    expect(seen.peers.map(({ name }: { name: string }) => name)).toContain('edge');
    expect(seen.warnings).toContainEqual(
      expect.stringMatching(/^addresses, routes and rules of this host cannot be read: .*ip .*more than 64 MiB/),
    );
    const planned = await origin.cpn(['plan'], { allowFailure: true });
    expect(planned).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('cannot be read: ') });
    const explained = await origin.cpn(['explain', '192.168.50.10'], { allowFailure: true });
    expect(explained).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('more than 64 MiB') });

    await origin.exec(['sh', '-c', `umount --lazy "$(readlink -f "$(command -v ip)")"`]);
    await eventually('the host is observed again', async () => (await status(origin)).state === 'up', {
      timeoutMs: 40_000,
    });
    expect(await peersOf(origin)).toHaveLength(2);
    expect((await origin.cpn(['plan'])).exitCode).toBe(0);
  } finally {
    await daemon.stop();
  }
}, 120_000);
