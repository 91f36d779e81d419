import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Desk, startPlane } from './desk.ts';

let desk: Desk;
let plane: Awaited<ReturnType<typeof startPlane>>;

beforeAll(async () => {
  desk = await Desk.open();
  plane = await startPlane(desk);
});

afterAll(async () => {
  await plane?.server.stop();
  await desk?.close();
});

const yes = ['--yes'];

/** Brings a peer into a network without a host behind it. */
async function enrol(network: string, name: string): Promise<void> {
  const key = await desk.write(
    'key',
    (await desk.ask(['key', 'create', network, '--name', name, '--type', 'connector'])).trim(),
  );
  const fields = [`enrollment_token=@${key}`, `name=${name}`, 'peer_type=connector', `public_key=${randomKey()}`];
  await desk.ask(['api', 'POST', '/api/networks/enroll', ...fields.flatMap((field) => ['--field', field])]);
}

const randomKey = () => randomBytes(32).toString('base64');

async function makeNetwork(name: string, cidr: string): Promise<void> {
  await desk.ask(['network', 'create', '--name', name, '--cidr', cidr, '--route', '192.168.50.0/24']);
}

describe('network', () => {
  it('is made, listed, shown and changed', async () => {
    expect((await desk.cpn(['network', 'list'])).stderr).toContain('there is no network yet');
    expect(await desk.json(['network', 'list'])).toEqual({ networks: [] });
    await makeNetwork('office', '10.77.0.0/24');
    const made = await desk.json(['network', 'create', '--name', 'lab', '--cidr', '10.78.0.0/24']);
    expect(made).toMatchObject({ name: 'lab', routes: [], peers: [] });
    expect(await desk.ask(['network', 'list'])).toMatch(/^id +name +range +routes\n1 +office +10\.77\.0\.0\/24 +192/);
    expect((await desk.json(['network', 'list'])).networks).toHaveLength(2);
    expect(await desk.ask(['network', 'show', 'office'])).toContain('10.77.0.0/24');

    const update = ['network', 'update', 'office'];
    expect(await desk.ask([...update, '--name', 'branch', '--description', 'a, b'])).toBe(
      'changed network branch (1)\n',
    );
    const routes = ['--route', '192.168.51.0/24', '--route', '192.168.52.0/24'];
    expect(await desk.json(['network', 'update', '1', '--name', 'office', ...routes])).toMatchObject({
      name: 'office',
      description: 'a, b',
      routes: ['192.168.51.0/24', '192.168.52.0/24'],
    });
    expect((await desk.json([...update, '--no-routes'])).routes).toEqual([]);
    expect((await desk.json(['network', 'show', 'office'])).routes).toEqual([]);
  });

  it('is not changed by nothing, nor to two things at once', async () => {
    expect(await desk.fail(['network', 'update', 'office'])).toMatchObject({
      exitCode: 2,
      said: expect.stringContaining('there is nothing to change; give --name'),
    });
    expect((await desk.fail(['network', 'update', 'office', '--no-routes', '--route', '10.0.0.0/8'])).exitCode).toBe(2);
    expect((await desk.fail(['network', 'update', 'office', '--route', '10.77.0.0/25'])).exitCode).toBe(4);
  });

  it('is deleted without a question where there is nobody to ask, and with --yes', async () => {
    expect((await desk.cpn(['network', 'delete', 'lab'])).stderr).toBe('deleted network lab (2)\n');
    await makeNetwork('lab', '10.78.0.0/24');
    expect(await desk.json(['network', 'delete', 'lab', ...yes])).toEqual({ id: 3, name: 'lab' });
    expect((await desk.fail(['network', 'delete', 'lab', ...yes])).said).toContain(
      'there is no network "lab"; there are: office (1)',
    );
  });

  it('is deleted on a terminal only after a yes', async () => {
    await makeNetwork('doomed', '10.79.0.0/24');
    const ask = ['network', 'delete', 'doomed'];
    const question = /Delete network doomed with 0 peers\?/;
    const refused = await desk.type(ask, [[question, 'n']]);
    expect([refused.exitCode, refused.stdout]).toEqual([1, expect.stringContaining('nothing was done')]);
    expect((await desk.json(['network', 'list'])).networks).toHaveLength(2);
    const agreed = await desk.type(ask, [[question, 'y']]);
    expect([agreed.exitCode, agreed.stdout]).toEqual([0, expect.stringContaining('deleted network doomed')]);
    await makeNetwork('doomed', '10.79.0.0/24');
    expect((await desk.type([...ask, ...yes], [])).stdout).not.toMatch(question);
    expect((await desk.json(['network', 'list'])).networks).toHaveLength(1);
  });
});

describe('key', () => {
  it('is made, listed and revoked', async () => {
    const made = await desk.cpn(['key', 'create', 'office', '--name', 'a']);
    expect(made.stdout).toMatch(/^cpn_[\w-]+\n$/);
    const { id, enrollment_token } = await desk.json(['key', 'create', 'office', '--name', 'b', '--max-uses', '3']);
    const listed = await desk.ask(['key', 'list', 'office']);
    expect(listed).toMatch(/^id +name +for +used +until\n.*\n\d+ +b +origin admin_device +0 of 3 +20/);
    expect(listed).not.toContain('cpn_');
    const { keys } = await desk.json(['key', 'list', 'office']);
    expect(keys.map(({ name }: { name: string }) => name)).toEqual(['a', 'b']);

    expect((await desk.cpn(['key', 'revoke', 'office', 'a'])).stderr).toMatch(/^revoked key a \(\d+\)\n$/);
    expect(await desk.json(['key', 'revoke', 'office', String(id), ...yes])).toEqual({ id, name: 'b' });
    expect((await desk.cpn(['key', 'list', 'office'])).stderr).toContain('there is no key');
    expect(await desk.fail(['key', 'revoke', 'office', 'a', ...yes])).toMatchObject({ exitCode: 2 });
    const fields = [`enrollment_token=${enrollment_token}`, 'name=x', `public_key=${randomKey()}`];
    const late = ['api', 'POST', '/api/networks/enroll', ...fields.flatMap((field) => ['--raw-field', field])];
    expect((await desk.cpn(late)).exitCode).toBe(4);
  });

  it('is for origins and admin devices, unless it is made for others; only a connector has routes', async () => {
    const create = ['key', 'create', 'office', '--name', 'limited'];
    const route = ['--route', '192.168.50.0/24'];
    await desk.ask(['network', 'update', 'office', ...route]);
    const made = await desk.cpn([...create, '--type', 'connector', ...route]);
    expect(made.stderr).toContain('join with: cpn join - --api URL --type connector <key');
    const { keys } = await desk.json(['key', 'list', 'office']);
    expect(keys).toMatchObject([{ peer_types: ['connector'], routes: ['192.168.50.0/24'] }]);
    expect(await desk.fail([...create, ...route])).toMatchObject({ exitCode: 2 });
    expect(await desk.fail([...create, '--type', 'router'])).toMatchObject({ exitCode: 2 });
    expect(await desk.fail([...create, '--type', 'connector', '--route', '10.9.0.0/16'])).toMatchObject({
      exitCode: 4,
    });
    await desk.ask(['key', 'revoke', 'office', 'limited', ...yes]);
  });

  it('is revoked on a terminal only after a yes', async () => {
    await desk.ask(['key', 'create', 'office', '--name', 'c']);
    const { exitCode } = await desk.type(['key', 'revoke', 'office', 'c'], [[/Revoke key c/, 'n']]);
    expect([exitCode, (await desk.json(['key', 'list', 'office'])).keys.length]).toEqual([1, 1]);
  });
});

describe('peer', () => {
  it('is listed, changed and removed', async () => {
    await desk.ask(['network', 'update', 'office', '--route', '192.168.50.0/24', '--route', '192.168.60.0/24']);
    expect((await desk.cpn(['peer', 'list', 'office'])).stderr).toContain('no host has joined yet');
    await enrol('office', 'edge-1');
    await enrol('office', 'edge-2');
    expect(await desk.ask(['peer', 'list', 'office'])).toMatch(/^peer +name.*\n\d+ +edge-1 +connector +10\.77\.0\.1 /);
    expect((await desk.json(['peer', 'list', 'office'])).peers).toHaveLength(2);

    const update = ['peer', 'update', 'office', 'edge-1'];
    expect(await desk.ask([...update, '--endpoint', 'edge.example.net:51820'])).toMatch(/^changed peer edge-1 \(\d+\)/);
    expect(await desk.json([...update, '--route', '192.168.60.0/24'])).toMatchObject({
      endpoint: 'edge.example.net:51820',
      routes: ['192.168.60.0/24'],
    });
    expect(await desk.json([...update, '--priority', '7'])).toMatchObject({ priority: 7 });
    expect(await desk.json([...update, '--no-routes', '--endpoint', 'none'])).toMatchObject({
      endpoint: null,
      routes: [],
    });
    const renamed = await desk.json([...update, '--routes', '--name', 'edge-one']);
    expect([renamed.name, renamed.routes]).toEqual(['edge-one', undefined]);

    expect(await desk.json(['peer', 'remove', 'office', 'edge-one', ...yes])).toEqual({
      id: renamed.id,
      name: 'edge-one',
    });
    expect((await desk.cpn(['peer', 'remove', 'office', 'edge-2'])).stderr).toContain('took peer edge-2');
    expect(await desk.fail(['peer', 'remove', 'office', 'edge-2'])).toMatchObject({
      exitCode: 2,
      said: expect.stringContaining('there is no peer "edge-2"; there are: none'),
    });
  });

  it.each<[string[], number, RegExp]>([
    [[], 2, /there is nothing to change; give --name, --endpoint/],
    [['--endpoint', '203.0.113.7'], 2, /--endpoint "203\.0\.113\.7" is not an endpoint/],
    [['--route', '192.168.50.0/24', '--no-routes'], 2, /--route excludes --routes and --no-routes/],
    [['--route', '172.16.0.0/12'], 4, /refused \(422\).*routes/],
  ])('is not changed by %j', async (flags, code, message) => {
    const { peers } = await desk.json(['peer', 'list', 'office']);
    if (!peers.some(({ name }: { name: string }) => name === 'edge-3')) await enrol('office', 'edge-3');
    const { exitCode, said } = await desk.fail(['peer', 'update', 'office', 'edge-3', ...flags]);
    expect([exitCode, said]).toEqual([code, expect.stringMatching(message)]);
  });

  it('is removed on a terminal only after a yes', async () => {
    await enrol('office', 'edge-4');
    const { exitCode } = await desk.type(
      ['peer', 'remove', 'office', 'edge-4'],
      [[/Take edge-4 .* out of office/, 'n']],
    );
    expect(exitCode).toBe(1);
    expect((await desk.json(['peer', 'list', 'office'])).peers.at(-1).name).toBe('edge-4');
  });
});
