import { readFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Host } from '../lab/host.ts';
import { join, type Office, patiently, plan, startOffice } from './office.ts';

let office: Office;
let connector: Host;
let laptop: Host;

beforeAll(async () => {
  office = await startOffice();
  connector = await office.lab.addHost('connector', { address: '203.0.113.11/24' });
  laptop = await office.lab.addHost('laptop', { address: '203.0.113.33/24' });
  await join(office, connector, '--type', 'connector', '--endpoint', '203.0.113.11:51820');
  await join(office, laptop, '--type', 'admin_device');
  await connector.cpn(['reconcile']);
}, 60_000);

afterAll(() => office?.lab.stop());

describe('the wg-quick file', () => {
  it('brought up by plain wg-quick gives a state in which there is nothing to change but the forwarding of a connector', async () => {
    for (const host of [connector, laptop]) await host.exec(['ip', 'link', 'del', 'cpn0']);
    for (const host of [connector, laptop]) {
      expect((await plan(host)).exitCode).toBe(3);
      await host.exec(['wg-quick', 'up', 'cpn0']);
    }
    expect(await plan(laptop)).toEqual({ exitCode: 0, changes: [] });
    const forwarding = { kind: 'sysctl', target: 'net.ipv4.conf.cpn0.forwarding', after: '1' };
    expect((await plan(connector)).changes).toEqual([expect.objectContaining(forwarding)]);
    expect(await laptop.ping('10.77.0.1', patiently)).toMatchObject({ received: 1 });
  });

  it('is what wg itself reads out of the interface', async () => {
    const stripped = (await laptop.exec(['wg-quick', 'strip', 'cpn0'])).stdout;
    const shown = (await laptop.exec(['wg', 'showconf', 'cpn0'])).stdout;
    const facts = (text: string) =>
      text
        .split('\n')
        .filter((line) => /^(PrivateKey|PublicKey|AllowedIPs|Endpoint|PersistentKeepalive)/.test(line))
        .map(sortList)
        .sort();
    expect(facts(stripped)).toEqual(facts(shown));
  });

  it('that wg-quick brought up is taken down by cpn', async () => {
    await laptop.cpn(['down']);
    await laptop.exec(['wg-quick', 'up', 'cpn0']);
    await laptop.cpn(['down']);
    expect((await laptop.exec(['ip', '-j', 'link'])).stdout).not.toContain('cpn0');
    await laptop.cpn(['up']);
    expect(await plan(laptop)).toEqual({ exitCode: 0, changes: [] });
  });

  it('is written anew when somebody changed it', async () => {
    const file = path(laptop.configDir, 'cpn0.conf');
    const before = await readFile(file, 'utf8');
    await laptop.exec(['sh', '-c', `echo 'PostUp = touch /tmp/cpn-owned' >>${file}`]);
    expect(await plan(laptop)).toMatchObject({
      exitCode: 3,
      changes: [{ action: 'update', kind: 'file', target: file }],
    });
    await laptop.cpn(['reconcile']);
    expect(await readFile(file, 'utf8')).toBe(before);
  });
});

const sortList = (line: string) => line.replace(/(?<== ).*/, (values) => values.split(', ').sort().join(', '));
