import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AdminShell, startPlane } from './admin-shell.ts';

let shell: AdminShell;
let plane: Awaited<ReturnType<typeof startPlane>>;

beforeAll(async () => {
  shell = await AdminShell.open();
  plane = await startPlane(shell);
});

afterAll(async () => {
  await plane?.server.stop();
  await shell?.close();
});

const yes = ['--yes'];

/** Brings a peer into a network without a host behind it, and returns its id and token. */
async function enrol(network: string, name: string): Promise<{ id: number; token: string }> {
  const key = await shell.write(
    'key',
    (await shell.output(['key', 'create', network, '--name', name, '--type', 'connector'])).trim(),
  );
  const fields = [`enrollment_token=@${key}`, `name=${name}`, 'peer_type=connector', `public_key=${randomKey()}`];
  const enrolled = await shell.output([
    ...['api', 'POST', '/api/networks/enroll'],
    ...fields.flatMap((field) => ['--field', field]),
  ]);
  const { peer, access_token } = JSON.parse(enrolled).data;
  return { id: peer.id, token: access_token };
}

const randomKey = () => randomBytes(32).toString('base64');

async function makeNetwork(name: string, cidr: string): Promise<void> {
  await shell.output(['network', 'create', '--name', name, '--cidr', cidr, '--route', '192.168.50.0/24']);
}

describe('network', () => {
  it('is made, listed, shown and changed', async () => {
    expect((await shell.cpn(['network', 'list'])).stderr).toContain('there is no network yet');
    expect(await shell.json(['network', 'list'])).toEqual({ networks: [] });
    await makeNetwork('office', '10.77.0.0/24');
    const made = await shell.json(['network', 'create', '--name', 'lab', '--cidr', '10.78.0.0/24']);
    expect(made).toMatchObject({ name: 'lab', routes: [], peers: [] });
    expect(await shell.output(['network', 'list'])).toMatch(
      /^id +name +range +routes\n1 +office +10\.77\.0\.0\/24 +192/,
    );
    const again = await shell.cpn(['network', 'create', '--name', 'lab', '--cidr', '10.79.0.0/24']);
    expect(again).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('--name "lab" is the name of network 2'),
    });
    expect((await shell.json(['network', 'list'])).networks).toHaveLength(2);
    expect(await shell.output(['network', 'show', 'office'])).toContain('10.77.0.0/24');

    const update = ['network', 'update', 'office'];
    expect(await shell.output([...update, '--name', 'branch', '--description', 'a, b'])).toBe(
      'changed network branch (1)\n',
    );
    const routes = ['--route', '192.168.51.0/24', '--route', '192.168.52.0/24'];
    expect(await shell.json(['network', 'update', '1', '--name', 'office', ...routes, ...yes])).toMatchObject({
      name: 'office',
      description: 'a, b',
      routes: ['192.168.51.0/24', '192.168.52.0/24'],
    });
    const taken = ['network', 'update', 'lab', '--name', 'office'];
    const stderr = expect.stringContaining('--name "office" is the name of network 1; choose another name');
    expect(await shell.fail(taken)).toMatchObject({ exitCode: 2, stderr });
    expect((await shell.json([...update, '--no-routes', ...yes])).routes).toEqual([]);
    expect((await shell.json(['network', 'show', 'office'])).routes).toEqual([]);
  });

  it('is not changed without a flag, nor with contradicting flags', async () => {
    expect(await shell.fail(['network', 'update', 'office'])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('there is nothing to change; give --name'),
    });
    expect((await shell.fail(['network', 'update', 'office', '--no-routes', '--route', '10.0.0.0/8'])).exitCode).toBe(
      2,
    );
    expect((await shell.fail(['network', 'update', 'office', '--route', '10.77.0.0/25'])).exitCode).toBe(4);
  });

  it('gets and loses single routes, and on a terminal loses others only after a yes', async () => {
    const update = ['network', 'update', 'office'];
    await shell.output([...update, '--route', '192.168.1.0/24']);
    expect((await shell.json([...update, '--add-route', '192.168.2.0/24'])).routes).toEqual([
      '192.168.1.0/24',
      '192.168.2.0/24',
    ]);
    expect((await shell.json([...update, '--remove-route', '192.168.1.0/24'])).routes).toEqual(['192.168.2.0/24']);
    expect(await shell.fail([...update, '--remove-route', '192.168.1.0/24'])).toMatchObject({
      exitCode: 4,
      stderr: expect.stringContaining('--remove-route: "192.168.1.0/24" is not a route of the network'),
    });
    const replace = [...update, '--route', '192.168.3.0/24'];
    const asked = await shell.type(replace, [[/Replace the routes of network office\?/, 'n\r']]);
    expect([asked.exitCode, asked.stdout]).toEqual([1, expect.stringContaining('removes 192.168.2.0/24')]);
    expect((await shell.type([...replace, ...yes], [])).exitCode).toBe(0);
    expect((await shell.json(['network', 'show', 'office'])).routes).toEqual(['192.168.3.0/24']);
  });

  it('is deleted without a terminal only with --yes, as all that prompts on a terminal', async () => {
    await shell.output(['key', 'create', 'office', '--name', 'kept']);
    await enrol('office', 'kept');
    await shell.output(['token', 'create', '--name', 'kept']);
    for (const [command, question] of [
      [['network', 'delete', 'lab'], 'Delete network lab?'],
      [['network', 'update', 'office', '--no-routes'], 'Replace the routes of network office?'],
      [['peer', 'remove', 'office', 'kept'], 'Remove kept '],
      [['peer', 'suspend', 'office', 'kept'], 'Suspend kept '],
      [['key', 'revoke', 'office', 'kept'], 'Revoke key kept '],
      [['token', 'revoke', 'kept'], 'Revoke token kept '],
      [['user', 'remove', 'owner@example.net'], 'Remove user owner@example.net, owner?'],
    ] as const) {
      const { exitCode, stderr } = await shell.fail(command);
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining(question)]);
      expect(stderr).toContain('no terminal to confirm on, and nothing was done; to confirm, add --yes');
    }
    expect((await shell.json(['network', 'list'])).networks).toHaveLength(2);
    await shell.output(['peer', 'remove', 'office', 'kept', ...yes]);
    await shell.output(['key', 'revoke', 'office', 'kept', ...yes]);
    await shell.output(['token', 'revoke', 'kept', ...yes]);
    // Of a network without peers no host takes a tunnel down.
    expect((await shell.cpn(['network', 'delete', 'lab', ...yes])).stderr).toBe('deleted network lab (2)\n');
    await makeNetwork('lab', '10.78.0.0/24');
    expect(await shell.json(['network', 'delete', 'lab', ...yes])).toEqual({ id: 3, name: 'lab', pending: [] });
    expect((await shell.fail(['network', 'delete', 'lab', ...yes])).stderr).toContain(
      'there is no network "lab"; there are: "office" (1)',
    );
  });

  it('is deleted on a terminal only when its name is typed', async () => {
    await makeNetwork('doomed', '10.79.0.0/24');
    await enrol('doomed', 'gate');
    const ask = ['network', 'delete', 'doomed'];
    const question = /Delete network doomed\?.*type doomed to confirm/;
    // The letters of "delete" moved and chose in a prompt for yes and no.
    const refused = await shell.type(ask, [
      [question, 'delete\r'],
      [/type doomed to confirm, or press Ctrl-C/, '\x03'],
    ]);
    expect([refused.exitCode, refused.stdout]).toEqual([1, expect.stringContaining('nothing was done')]);
    expect(refused.stdout).toMatch(/Hosts that lose it: gate\. Connections .* an address in 10\.79\.0\.0\/24/);
    expect((await shell.json(['network', 'list'])).networks).toHaveLength(2);
    const ended = await shell.type(ask, [[question, '\x04']]);
    expect([ended.exitCode, ended.stdout]).toEqual([1, expect.stringContaining('nothing was done')]);
    // A name with blanks around it, which another client gave, is typed without them.
    await makeNetwork(' spaced ', '10.80.0.0/24');
    const spaced = await shell.type(
      ['network', 'delete', '--wait', '0', ' spaced '],
      [[/type spaced to confirm/, 'spaced\r']],
    );
    expect([spaced.exitCode, spaced.stdout]).toEqual([0, expect.stringContaining('deleted network')]);
    const agreed = await shell.type(ask, [[question, 'doomed\r']]);
    expect([agreed.exitCode, agreed.stdout]).toEqual([0, expect.stringContaining('deleted network doomed')]);
    await makeNetwork('doomed', '10.79.0.0/24');
    expect((await shell.type([...ask, ...yes], [])).stdout).not.toMatch(question);
    expect((await shell.json(['network', 'list'])).networks).toHaveLength(1);
  });
});

describe('key', () => {
  it('is made, listed and revoked', async () => {
    const made = await shell.cpn(['key', 'create', 'office', '--name', 'a']);
    expect(made.stdout).toMatch(/^cpn_[\w-]+\n$/);
    const { id, enrollment_token } = await shell.json(['key', 'create', 'office', '--name', 'b', '--max-uses', '3']);
    const listed = await shell.output(['key', 'list', 'office']);
    expect(listed).toMatch(/^id +name +for +used +until\n.*\n\d+ +b +origin admin_device +0 of 3 +20/);
    expect(listed).not.toContain('cpn_');
    const { keys } = await shell.json(['key', 'list', 'office']);
    expect(keys.map(({ name }: { name: string }) => name)).toEqual(['a', 'b']);

    expect((await shell.cpn(['key', 'revoke', '--yes', 'office', 'a'])).stderr).toMatch(/^revoked key a \(\d+\)\n$/);
    expect(await shell.json(['key', 'revoke', 'office', String(id), ...yes])).toEqual({ id, name: 'b' });
    expect((await shell.cpn(['key', 'list', 'office'])).stderr).toContain('there is no usable key');
    expect(await shell.fail(['key', 'revoke', 'office', 'a', ...yes])).toMatchObject({ exitCode: 2 });
    const fields = [`enrollment_token=${enrollment_token}`, 'name=x', `public_key=${randomKey()}`];
    // Of two keys with one name, the one that is of use.
    await shell.output(['key', 'create', 'office', '--name', 'a']);
    expect((await shell.cpn(['key', 'revoke', '--yes', 'office', 'a'])).stderr).toMatch(/^revoked key a/);
    const late = ['api', 'POST', '/api/networks/enroll', ...fields.flatMap((field) => ['--raw-field', field])];
    expect((await shell.cpn(late)).exitCode).toBe(4);
  });

  it('is for servers and laptops, unless it is made for others; only a connector has routes', async () => {
    const create = ['key', 'create', 'office', '--name', 'limited'];
    const route = ['--route', '192.168.50.0/24'];
    await shell.output(['network', 'update', 'office', ...route, ...yes]);
    const made = await shell.cpn([...create, '--type', 'connector', ...route]);
    expect(made.stderr).toMatch(
      /join with: cpn join - --api \S+( --insecure-http)? --type connector --endpoint HOST:51820 <key\n/,
    );
    const { keys } = await shell.json(['key', 'list', 'office']);
    expect(keys).toMatchObject([{ peer_types: ['connector'], routes: ['192.168.50.0/24'] }]);
    expect(await shell.fail([...create, ...route])).toMatchObject({ exitCode: 2 });
    expect(await shell.fail([...create, '--type', 'router'])).toMatchObject({ exitCode: 2 });
    expect(await shell.fail([...create, '--type', 'connector', '--route', '10.9.0.0/16'])).toMatchObject({
      exitCode: 4,
    });
    await shell.output(['key', 'revoke', 'office', 'limited', ...yes]);
  });

  it('is revoked on a terminal only after a yes', async () => {
    const made = await shell.type(['key', 'create', 'office', '--name', 'c'], []);
    expect(made.stdout).toMatch(/join with: cpn join --api \S+ +\(paste the key at its prompt, and press Enter\)/);
    const { exitCode } = await shell.type(['key', 'revoke', 'office', 'c'], [[/Revoke key c.*y\/n/, 'n\r']]);
    expect([exitCode, (await shell.json(['key', 'list', 'office'])).keys.length]).toEqual([1, 1]);
  });
});

describe('peer', () => {
  it('is listed, changed and removed', async () => {
    await shell.output([
      'network',
      'update',
      'office',
      '--route',
      '192.168.50.0/24',
      '--route',
      '192.168.60.0/24',
      ...yes,
    ]);
    expect((await shell.cpn(['peer', 'list', 'office'])).stderr).toContain('no host has joined yet');
    await enrol('office', 'edge-1');
    await enrol('office', 'edge-2');
    expect(await shell.output(['peer', 'list', 'office'])).toMatch(
      /^peer +name +type +state +last seen +path +version .*\n\d+ +edge-1 +connector +unknown +(-|\d+ s ago) +- +- +10\.77\.0\.\d+ /,
    );
    expect((await shell.json(['peer', 'list', 'office'])).peers).toHaveLength(2);

    const update = ['peer', 'update', 'office', 'edge-1'];
    expect(await shell.output([...update, '--endpoint', 'edge.example.net:51820'])).toMatch(
      /^changed peer edge-1 \(\d+\)/,
    );
    expect(await shell.json([...update, '--route', '192.168.60.0/24'])).toMatchObject({
      endpoint: 'edge.example.net:51820',
      routes: ['192.168.60.0/24'],
    });
    expect(await shell.json([...update, '--priority', '7'])).toMatchObject({ priority: 7 });
    expect(await shell.json([...update, '--no-routes', '--endpoint', 'none'])).toMatchObject({
      endpoint: null,
      routes: [],
    });
    const renamed = await shell.json([...update, '--routes', '--name', 'edge-one']);
    expect([renamed.name, renamed.routes]).toEqual(['edge-one', undefined]);

    expect(await shell.json(['peer', 'remove', 'office', 'edge-one', ...yes])).toEqual({
      id: renamed.id,
      name: 'edge-one',
      pending: [],
    });
    expect((await shell.cpn(['peer', 'remove', '--yes', 'office', 'edge-2'])).stderr).toContain('removed peer edge-2');
    expect(await shell.fail(['peer', 'remove', '--yes', 'office', 'edge-2'])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('there is no peer "edge-2"; there are: none'),
    });
  });

  it('has what the hosts observe of it', async () => {
    const [one, other] = [await enrol('office', 'host-1'), await enrol('office', 'host-2')];
    const report = await shell.write(
      'report',
      JSON.stringify({ complete: true, paths: [{ peer: other.id, path: 'direct' }] }),
    );
    const send = ['api', 'POST', `/api/networks/1/peers/${one.id}/report`, '--input', report];
    await shell.output(send, { env: { CPN_API_TOKEN: one.token } });
    const listed = async (name: string) =>
      (await shell.json(['peer', 'list', 'office'])).peers.find((peer: { name: string }) => peer.name === name);
    expect(await listed('host-1')).toMatchObject({ state: 'online', path: null, witnesses: 0 });
    expect(await listed('host-2')).toMatchObject({ state: 'online', path: 'direct', reachable_by: 1, witnesses: 1 });
    for (const command of [
      ['network', 'show'],
      ['peer', 'list'],
    ]) {
      expect(await shell.output([...command, 'office'])).toMatch(
        /host-1 +connector +online +(?:-|\d+ s ago) +- .*\n\d+ +host-2 +connector +online +(?:-|\d+ s ago) +direct, 1 of 1 /,
      );
    }
    for (const name of ['host-1', 'host-2']) await shell.output(['peer', 'remove', 'office', name, ...yes]);
  });

  it('is suspended, resumed, and expires', async () => {
    await enrol('office', 'laptop');
    const laptop = async () => (await shell.json(['peer', 'list', 'office'])).peers.at(-1);
    const { id, address } = await laptop();
    const mapped = async () => JSON.parse(await shell.output(['api', 'GET', '/api/networks/1'])).data.peers.length;
    const before = await mapped();
    const [suspend, resume] = [
      ['peer', 'suspend', 'office', 'laptop'],
      ['peer', 'resume', 'office', 'laptop'],
    ] as const;
    expect((await shell.type(suspend, [[/Suspend laptop .* until it is resumed.*y\/n/, 'n\r']])).exitCode).toBe(1);
    const open = async () => (await shell.json(['key', 'list', 'office'])).keys;
    for (const { name } of await open()) await shell.output(['key', 'revoke', 'office', name, ...yes]);
    const line = `suspended peer laptop (${id}) of network office\n`;
    const applied = 'all hosts have applied it\n';
    const { stderr } = await shell.cpn([...suspend, ...yes]);
    expect(stderr).toMatch(
      /^warning: without laptop, [\d./, ]+ ha(?:s|ve) no connector: hosts do not reach th.* routes?\n/,
    );
    expect(stderr.slice(stderr.indexOf('\n') + 1)).toBe(`${line}${applied}`);
    await shell.output(['key', 'create', 'office', '--name', 'spare']);
    const left =
      'usable enrolment keys: 1; a holder can join again; list them with "cpn key list", revoke with "cpn key revoke"\n';
    expect((await shell.cpn([...suspend, ...yes])).stderr).toBe(`${line}${left}${applied}`);
    const update = ['peer', 'update', 'office', 'laptop', '--expires'];
    expect((await shell.cpn([...update, '90d'])).stderr).toBe(left);
    expect((await shell.cpn([...update, 'never'])).stderr).toBe('');
    await shell.output(['key', 'revoke', 'office', 'spare', ...yes]);
    expect(await mapped()).toBe(before - 1);
    expect(await laptop()).toMatchObject({ id, address, suspended_at: expect.any(String) });
    expect(await shell.output(['network', 'show', 'office'])).toMatch(/laptop +connector +suspended/);
    expect((await shell.cpn([...resume])).stderr).toContain('resumed peer laptop');
    expect(await mapped()).toBe(before);

    expect(Date.parse((await shell.json([...update, '90d'])).expires_at)).toBeGreaterThan(Date.now());
    const soon = new Date(Date.now() + 1500).toISOString();
    await shell.output([...update, soon]);
    await expect.poll(mapped, { timeout: 30_000 }).toBe(before - 1);
    expect((await shell.fail(resume)).stderr).toContain(`laptop expired on ${soon}; give a new --expires`);
    expect((await shell.json([...resume, '--expires', 'never'])).expires_at).toBeUndefined();
    expect(await mapped()).toBe(before);

    await shell.output(['key', 'create', 'office', '--name', 'guests', '--peer-expires', '90d']);
    expect(await shell.output(['key', 'list', 'office'])).toContain('origin admin_device for 90d');
    expect((await shell.fail(['key', 'create', 'office', '--name', 'x', '--peer-expires', '90m'])).exitCode).toBe(2);
    await shell.output(['key', 'revoke', 'office', 'guests', ...yes]);
    await shell.output(['peer', 'remove', 'office', 'laptop', ...yes]);
  });

  it.each<[string[], number, RegExp]>([
    [[], 2, /there is nothing to change; give --name, --endpoint/],
    [['--endpoint', '203.0.113.7'], 2, /--endpoint "203\.0\.113\.7" is not an endpoint/],
    [['--route', '192.168.50.0/24', '--no-routes'], 2, /--route excludes --routes and --no-routes/],
    [['--route', '172.16.0.0/12'], 4, /refused \(422\).*--route: /],
  ])('is not changed by %j', async (flags, code, message) => {
    const { peers } = await shell.json(['peer', 'list', 'office']);
    if (!peers.some(({ name }: { name: string }) => name === 'edge-3')) await enrol('office', 'edge-3');
    const { exitCode, stderr } = await shell.fail(['peer', 'update', 'office', 'edge-3', ...flags]);
    expect([exitCode, stderr]).toEqual([code, expect.stringMatching(message)]);
  });

  it('is removed on a terminal only when its name is typed', async () => {
    await enrol('office', 'edge-4');
    const question = /Remove edge-4 .* from office.*type edge-4 to confirm/;
    const { exitCode } = await shell.type(['peer', 'remove', 'office', 'edge-4'], [[question, '\x03']]);
    expect(exitCode).toBe(1);
    expect((await shell.json(['peer', 'list', 'office'])).peers.at(-1).name).toBe('edge-4');
  });
});

describe('a profile of a device', () => {
  it('is not made where no peer has an endpoint, and the error names how one gets one', async () => {
    await makeNetwork('bare', '10.90.0.0/24');
    const make = () => shell.cpn(['export', 'bare', '--new-peer', 'phone', '--via', 'all']);
    const { exitCode, stderr } = await make();
    expect([exitCode, stderr]).toEqual([
      2,
      expect.stringMatching(/enrol a connector with an endpoint: cpn key create \d+ --name NAME --type connector/),
    ]);
    await enrol('bare', 'edge');
    expect((await make()).stderr).toContain('give a connector one, on its host: cpn set --endpoint HOST:PORT');
  });
});
