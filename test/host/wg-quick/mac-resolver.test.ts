import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { planDns, planDnsRemoval } from '../../../src/core/reconcile/plan-dns.ts';
import { readMacResolver } from '../../../src/host/wg-quick/mac-resolver.ts';
import { portableHost } from '../../../src/host/wg-quick/portable-host.ts';
import { tunnelFiles } from '../../../src/host/wg-quick/tunnel-files.ts';
import { wgQuickManager } from '../../../src/host/wg-quick/tunnel-manager.ts';
import { address, bare } from '../../core/samples.ts';

const domains = ['corp.example', 'x.example'];
const direct = { servers: [{ address: address('192.168.50.53'), port: 53 }], domains };
const ofDaemon = {
  servers: [{ address: address('10.77.0.5'), port: 553 }],
  domains: [...domains, 'office.cpn.internal'],
};
const mark = (link: string) => `# cpn ${link} (written by cpn; edits are lost)\n`;

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cpn-resolver-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
});

const observe = async () => ({ ...bare, ...(await readMacResolver(join(folder, 'resolver'), 'cpn0', null)) });

it('has a file for each domain on macOS, changes only what differs, and removes them', async () => {
  const run = async () => '';
  const host = portableHost({
    run,
    files: tunnelFiles(folder),
    manager: wgQuickManager(run, 'darwin'),
    resolverFolder: folder,
  });
  const apply = async (wanted: typeof direct) => {
    for (const step of planDns({ link: 'cpn0', dns: wanted, ownsDns: true }, await observe())) await host.apply(step);
    expect(planDns({ link: 'cpn0', dns: wanted, ownsDns: true }, await observe())).toEqual([]);
  };
  const read = (domain: string) => readFile(join(folder, 'resolver', domain), 'utf8');
  await apply(direct);
  expect(await read('corp.example')).toBe(`${mark('cpn0')}nameserver 192.168.50.53\n`);
  await apply(ofDaemon);
  expect(await readdir(join(folder, 'resolver'))).toEqual(['corp.example', 'office.cpn.internal', 'x.example']);
  expect(await read('corp.example')).toBe(`${mark('cpn0')}nameserver 10.77.0.5\nport 553\n`);
  expect(await read('office.cpn.internal')).toBe(`${mark('cpn0')}nameserver 10.77.0.5\nport 553\n`);
  await apply(direct);
  expect(await readdir(join(folder, 'resolver'))).toEqual(['corp.example', 'x.example']);
  for (const step of planDnsRemoval('cpn0', await observe(), 'taken back')) await host.apply(step);
  expect(await readdir(join(folder, 'resolver'))).toEqual([]);
});

it('has the domains of other programs, and of other networks', async () => {
  await writeFile(join(folder, 'Corp.Example'), 'nameserver 192.0.2.53\n');
  await writeFile(join(folder, 'x.example'), `${mark('cpn1')}nameserver 192.0.2.54\n`);
  await writeFile(join(folder, '.x.example.tmp'), mark('cpn0'));
  const found = await readMacResolver(folder, 'cpn0', null);
  expect(found.dns?.others).toEqual([
    { domain: 'corp.example', link: null },
    { domain: 'x.example', link: 'cpn1' },
  ]);
  expect(found.dnsFiles).toEqual({});
});
