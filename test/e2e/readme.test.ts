import { copyFile, mkdir, readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadCommands } from '../../src/cli/parse/commands.ts';
import type { Host } from '../lab/host.ts';
import { Lab } from '../lab/lab.ts';

const commands = await loadCommands();

const repository = join(import.meta.dirname, '../..');
let lab: Lab;
let readme: string;

beforeAll(async () => {
  lab = await Lab.start();
  readme = await readFile(join(repository, 'README.md'), 'utf8');
});

afterAll(() => lab?.stop());

/** Runs a block of README in the home of a host, as a person would type it. */
async function type(host: Host, block: string) {
  const bin = join(host.folder, 'bin');
  const script = `cd; PATH=${bin}:$PATH; set -e; ${block}`;
  // Hosts of the lab share the machine's /var/lib.
  return host.exec(['sh', '-c', script], { timeoutMs: 50_000, env: { CPN_DATA: join(host.folder, 'data') } });
}

async function addHost(name: string, address: string): Promise<Host> {
  const host = await lab.addHost(name, { address });
  await mkdir(join(host.folder, 'bin'));
  await symlink(join(repository, 'dist/cpn.js'), join(host.folder, 'bin/cpn'));
  return host;
}

describe('README', () => {
  it('shows a set-up that works as it stands', async () => {
    const blocks = [...readme.matchAll(/```sh\n(.*?)```/gs)].map(([, block]) => block ?? '');
    const [first, second, last] = ['control-plane serve', '<key-2', 'cpn wait '].map((word) =>
      blocks.filter((block) => block.includes(word)),
    );
    if (first?.length !== 1 || second?.length !== 1 || last?.length !== 1)
      throw new Error('README has other blocks than this test knows');
    const here = await addHost('here', '203.0.113.1/24');
    const there = await addHost('there', '203.0.113.22/24');
    await type(here, `${first}`);
    await copyFile(join(here.homeDir, 'key-2'), join(there.homeDir, 'key-2'));
    await type(there, `${second}`);
    expect((await type(here, `${last}`)).stdout).toMatch(/[1-3] received/);
  });

  it('and docs/control-plane.md show tasks that work as they stand in this network', async () => {
    const page = await readFile(join(repository, 'docs/control-plane.md'), 'utf8');
    const blocksOf = (task: string) =>
      [...(page.split(`\n### ${task}\n`)[1]?.split(/\n###? /)[0] ?? '').matchAll(/```sh\n(.*?)```/gs)].map(
        ([, block = '']) =>
          block
            .replaceAll('https://cp.example.net', 'http://203.0.113.1:8787 --insecure-http')
            .replace('203.0.113.22:51820', '203.0.113.33:51820')
            // Typed without a terminal.
            .replaceAll(/^cpn (leave|drain|peer suspend|user remove)\b.*/gm, '$& --yes'),
      );
    const [key = '', join_ = ''] = blocksOf('Add a site');
    const here = lab.hosts.get('here') ?? expect.unreachable();
    const berlin = await addHost('berlin', '203.0.113.33/24');
    await type(here, key);
    await copyFile(join(here.homeDir, 'key-berlin-1'), join(berlin.homeDir, 'key-berlin-1'));
    await type(berlin, join_);
    const peers = await type(here, 'cpn peer list office --json');
    expect(JSON.parse(peers.stdout).peers).toContainEqual(expect.objectContaining({ routes: ['192.168.60.0/24'] }));

    const [leave = ''] = blocksOf('Replace a connector');
    await type(berlin, leave);
    expect((await type(berlin, 'cpn status 2>&1 || true')).stdout).not.toContain('office');

    await type(here, 'cpn user create --email ann@example.net --role member --password-file password');
    await type(here, `${blocksOf('Offboard a person or a lost laptop')}`.replace('ann-laptop', 'there'));
    expect((await type(here, 'cpn user list --json')).stdout).not.toContain('ann@example.net');
    expect((await type(here, 'cpn peer list office')).stdout).toContain('suspended');
  });

  it('names every command there is, and no other', () => {
    const rows = readme.split('\n').filter((line) => line.startsWith('| `cpn '));
    const named = rows.flatMap((row) => {
      const words = [...(row.split(' | ')[0] ?? '').matchAll(/`(cpn )?([a-z -]*[a-z])/g)];
      // After `cpn user list`, a `create` alone is `cpn user create`.
      const [group = ''] = words[0]?.[2]?.split(' ') ?? [];
      return words.map(([, cpn, name = '']) => (cpn === undefined ? `${group} ${name}` : name));
    });
    expect(named.toSorted()).toEqual(commands.map(({ name }) => name).toSorted());
  });
});
