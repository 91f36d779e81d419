import { writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { join, type Office, startOffice } from './office.ts';
import { startSession } from './tcp-session.ts';

let office: Office;

beforeAll(async () => {
  office = await startOffice();
}, 60_000);
afterAll(() => office?.lab.stop());

it('apply warns of the TCP connections of its own machine that the rules end, and of no other', async () => {
  const { controlPlane, lab } = office;
  const db = await lab.addHost('db', { address: '203.0.113.11/24' });
  const own = await join(office, controlPlane.host, '--endpoint', '203.0.113.1:51820');
  const other = await join(office, db, '--endpoint', '203.0.113.11:51820');
  await controlPlane.cpn(['reconcile']);
  const session = await startSession(controlPlane.host, db, other.address);
  const file = path(controlPlane.host.homeDir, 'rules.yaml');
  const warned = async (text: string) => {
    await writeFile(file, text);
    return (await controlPlane.cpn(['rules', 'apply', file, '--dry-run'])).stderr;
  };
  const rule = (port: number) =>
    `mode: closed\nrules:\n- {name: a, from: [peer:control-plane], to: [peer:db], protocol: tcp, ports: [${port}]}\n`;
  expect(await warned(rule(22))).toContain(
    `warning: connections of this machine that end: ${own.address} → ${other.address} port 8090\n`,
  );
  expect(await warned(rule(8090))).not.toContain('connections of this machine');
  expect(session.trouble).toEqual([]);
  await session.stop();
});
