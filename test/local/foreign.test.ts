/** Objects of other programs with the program's names are neither touched nor adopted. */
import { readFile, writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { join, type Office, startOffice } from '../e2e/office.ts';
import { makeKey } from '../lab/control-plane.ts';
import type { Host } from '../lab/host.ts';

let office: Office;
let host: Host;

beforeAll(async () => {
  office = await startOffice();
  host = await office.lab.addHost('host', { address: '203.0.113.11/24' });
}, 60_000);

afterAll(() => office?.lab.stop());

const sh = async (script: string): Promise<string> => (await host.exec(['sh', '-ec', script])).stdout;

/** A tunnel made by hand, with a key and a peer of its own. */
const makeTunnel = (link: string) =>
  sh(`ip link add ${link} type wireguard 2>/dev/null || wireguard-go ${link} 2>/dev/null
    wg genkey | wg set ${link} private-key /dev/stdin peer $(wg genkey | wg pubkey) allowed-ips 10.9.0.0/24
    ip link set ${link} up; wg showconf ${link}`);

test('join skips interfaces and wg-quick files of these names, and outlive leave', async () => {
  await sh('ip link add cpn0 type bridge; ip link set cpn0 alias "another program"');
  const tunnel = await makeTunnel('cpn1');
  const file = path(host.configDir, 'cpn2.conf');
  await writeFile(file, '[Interface]\n# by hand\n', { mode: 0o640 });
  const before = await host.state();
  expect(await join(office, host)).toMatchObject({ interface: 'cpn3' });
  await host.cpn(['leave', '--yes', '--verify']);
  expect(await host.state()).toBe(before);
  expect(await sh('wg showconf cpn1')).toBe(tunnel);
  expect(await readFile(file, 'utf8')).toBe('[Interface]\n# by hand\n');
});

test("a foreign tunnel in the place of the program's is refused by every pass, and outlives leave", async () => {
  const { interface: link } = await join(office, host);
  await host.cpn(['down']);
  const tunnel = await makeTunnel(link);
  for (const command of ['up', 'reconcile', 'plan']) {
    const { exitCode, stderr } = await host.cpn([command], { allowFailure: true });
    expect({ command, exitCode, stderr }).toEqual({
      command,
      exitCode: command === 'up' ? 2 : expect.any(Number),
      stderr: expect.stringContaining(command === 'up' ? `the interface "${link}" exists and was not made by cpn` : ''),
    });
    expect(await sh(`wg showconf ${link}`)).toBe(tunnel);
  }
  await host.cpn(['leave', '--yes']);
  expect(await sh(`wg showconf ${link}`)).toBe(tunnel);
});

test('a foreign table of packet rules is refused with the remedy, and outlives leave', async () => {
  const link = 'fw0';
  const table = `table inet cpn_${link} { chain mine { type filter hook forward priority 0; ip daddr 10.9.0.0/24 drop; }; }`;
  await sh(`nft '${table}'`);
  const rules = await sh('nft list ruleset');
  const key = await makeKey(office.controlPlane, 'office', 'host with a table', '--type', 'connector');
  const argv = ['join', '-', ...office.api, '--type', 'connector', '--interface', link, '--wait', '0'];
  const { exitCode, stderr } = await host.cpn(argv, { input: key, allowFailure: true });
  expect(exitCode).toBe(2);
  expect(stderr).toContain(`the nft table "inet cpn_${link}" exists and was not made by cpn; type: nft delete table`);
  expect(await sh('nft list ruleset')).toBe(rules);
  expect(await sh('ip -o link show')).not.toContain(link);
  await host.cpn(['leave', '--yes', link]);
  expect(await sh('nft list ruleset')).toBe(rules);
});
