import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AdminShell, startPlane } from './admin-shell.ts';

let shell: AdminShell;
let plane: Awaited<ReturnType<typeof startPlane>>;

beforeAll(async () => {
  shell = await AdminShell.open();
  plane = await startPlane(shell);
  await shell.output(['network', 'create', '--name', 'office', '--cidr', '10.77.0.0/24']);
});

afterAll(async () => {
  await plane?.server.stop();
  await shell?.close();
});

const yes = ['--yes'];

describe('user', () => {
  const create = (email: string, role: string, ...more: string[]) => [
    'user',
    'create',
    '--email',
    email,
    '--role',
    role,
    ...more,
  ];

  it('is made, listed and removed', async () => {
    const file = await shell.write('password', 'correct horse battery\n');
    expect(await shell.output(create('a@example.net', 'admin', '--password-file', file))).toMatch(
      /^created user a@example\.net \(\d+\), admin\n$/,
    );
    const made = await shell.json(create('v@example.net', 'viewer', '--password-file', file));
    expect(made).toMatchObject({ email: 'v@example.net', role: 'viewer' });
    expect(await shell.output(['user', 'list'])).toMatch(
      /^id +e-mail +role +second factor +since\n1 +owner@example\.net +owner +no +20/,
    );
    expect((await shell.json(['user', 'list'])).users).toHaveLength(3);
    expect((await shell.cpn(['user', 'remove', '--yes', 'a@example.net'])).stderr).toMatch(
      /^removed user a@example\.net/,
    );
    expect(await shell.json(['user', 'remove', String(made.id), ...yes])).toEqual({
      id: made.id,
      email: 'v@example.net',
      keys_revoked: [],
    });
    expect((await shell.json(['user', 'list'])).users).toHaveLength(1);
  });

  it('is limited to a network, and limits a token', async () => {
    await shell.output(['network', 'create', '--name', 'annex', '--cidr', '10.78.0.0/24']);
    const [email, file] = ['l@example.net', await shell.write('password', 'correct horse battery\n')];
    const limit = ['--network', 'annex', '--password-file', file];
    expect(await shell.output(create(email, 'admin', ...limit))).toMatch(/, admin, limited to networks: annex\n$/);
    expect(await shell.output(['user', 'list'])).toMatch(/since +networks\n.* all\n.* annex\n$/);
    const env = { XDG_CONFIG_HOME: join(shell.folder, 'limited') };
    await shell.json(['login', '--api', plane.url, '--email', email, '--password-file', file], { env });
    expect(await shell.output(['whoami'], { env })).toMatch(/; limited to networks: annex\n$/);
    expect(await shell.fail(['network', 'delete', 'office', '--yes'], env)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('there is no network "office"; there are: "annex"'),
    });
    expect(await shell.fail(['network', 'delete', '1', '--yes'], env)).toMatchObject({ exitCode: 2 });
    expect((await shell.fail(['user', 'list'], env)).stderr).toContain('a user who is limited to networks may not');
    expect((await shell.fail(['audit'], env)).stderr).toContain('ask an owner, or an admin without a limit');

    const createToken = ['token', 'create', '--name', 'annex-ci', '--network', 'annex'];
    const { stdout: token, stderr } = await shell.cpn(createToken);
    expect(stderr).toContain('limited to networks: annex\n');
    const byToken = { CPN_API_TOKEN: token.trim(), CPN_API_URL: plane.url };
    expect(await shell.output(['network', 'list'], { env: byToken })).not.toContain('office');
    expect(await shell.output(['token', 'list'])).toMatch(/ annex-ci .* annex\n/);
    expect((await shell.fail(['token', 'list'], byToken)).stderr).toContain('a token that is limited to networks');

    const update = (...flags: string[]) => shell.output(['user', 'update', email, ...flags]);
    expect(await update('--all-networks')).toMatch(/, admin\n$/);
    expect(await update('--network', 'annex', '--network', 'office')).toMatch(/limited to networks: office, annex\n$/);
    expect((await shell.fail(['user', 'update', email])).stderr).toContain('there is nothing to change');
    await update('--network', 'annex');
    // The limit stays where its network was deleted.
    const deleted = await shell.cpn(['network', 'delete', 'annex', '--yes'], { env });
    expect(deleted.stderr).toContain('annex');
    expect(await shell.output(['whoami'], { env })).toMatch(/; limited to networks: none\n$/);
    await shell.output(['user', 'remove', '--yes', email]);
    await shell.output(['token', 'revoke', '--yes', 'annex-ci']);
  });

  it('gets a password that is typed twice', async () => {
    const asked = create('t@example.net', 'member');
    const slip = await shell.type(asked, [
      [/Password/, 'correct horse battery\r'],
      [/Repeat the password/, 'correct horse butter\r'],
    ]);
    expect([slip.exitCode, slip.stdout]).toEqual([2, expect.stringContaining('the two passwords differ')]);
    const made = await shell.type(asked, [
      [/Password/, 'correct horse battery\r'],
      [/Repeat the password/, 'correct horse battery\r'],
    ]);
    expect([made.exitCode, made.stdout]).toEqual([0, expect.stringContaining('created user')]);
    expect(made.stdout + slip.stdout).not.toContain('correct');
    const reset = ['user', 'reset-factors', 't@example.net'];
    expect((await shell.cpn([...reset, '--yes'])).stderr).toMatch(
      /^user t@example\.net \(\d+\) has no second factor\n$/,
    );
    const remove = ['user', 'remove', 't@example.net'];
    const question = /Remove user t@example\.net, member\?.*type t@example\.net to confirm/;
    expect((await shell.type(remove, [[question, '\x03']])).exitCode).toBe(1);
    expect((await shell.type(remove, [[question, 't@example.net\r']])).stdout).toContain('removed user t@example.net');
  });

  it('gets another role, changes its own password, and ends its sessions', async () => {
    const email = 'm@example.net';
    const [old, next] = [
      await shell.write('old', 'correct horse battery\n'),
      await shell.write('next', 'another horse battery\n'),
    ];
    await shell.output(create(email, 'member', '--password-file', old));
    expect(await shell.output(['user', 'update', email, '--role', 'viewer'])).toMatch(
      /^changed user m@example\.net \(\d+\), viewer\n$/,
    );
    expect(await shell.json(['user', 'update', email, '--role', 'admin'])).toMatchObject({ email, role: 'admin' });
    expect(await shell.fail(['user', 'update', 'owner@example.net', '--role', 'admin'])).toMatchObject({
      exitCode: 4,
      stderr: expect.stringContaining('owner@example.net is the last owner; make another user an owner first'),
    });
    const homes = ['one', 'other'].map((name) => ({ XDG_CONFIG_HOME: join(shell.folder, name) }));
    const [one = {}, other = {}] = homes;
    const login = (env: object, file: string) =>
      shell.json(['login', '--api', plane.url, '--email', email, '--password-file', file], { env: { ...env } });
    for (const env of homes) await login(env, old);

    const token = await shell.json(['token', 'create', '--name', 'ci'], { env: one });
    const key = await shell.json(['key', 'create', 'office', '--name', 'mine'], { env: one });
    const passwd = ['user', 'passwd', '--password-file', old, '--new-password-file', next];
    const { stderr: changed } = await shell.cpn(passwd, { env: one });
    expect(changed).toBe(
      [
        `changed your password; your other sessions ended\nrevoked personal tokens: ci (${token.id})\n`,
        `usable enrolment keys that you created: mine (${key.id}) of office (1)\n`,
        'remove what you do not recognise with: cpn key revoke NETWORK KEY\n',
      ].join(''),
    );
    expect(await shell.json(['whoami'], { env: one })).toMatchObject({ email });
    expect((await shell.fail(['whoami'], other)).exitCode).toBe(4);
    expect(await shell.fail(passwd, one)).toMatchObject({ exitCode: 4, stderr: expect.stringContaining('is wrong') });
    expect((await shell.fail(['user', 'passwd'], one)).stderr).toContain('--password-file is missing');

    const slip = await shell.type(
      ['user', 'passwd'],
      [
        [/Current password/, `${plane.password}\r`],
        [/New password/, 'another horse battery\r'],
        [/Repeat the password/, 'another horse butter\r'],
      ],
    );
    expect([slip.exitCode, slip.stdout]).toEqual([2, expect.stringContaining('the two passwords differ')]);

    await login(other, next);
    const list = (await shell.cpn(['token', 'list'], { env: one })).stdout;
    expect(list).toMatch(
      /^session +device +since +until +last used +from *\n\d+ +cpn on .* 127\.0\.0\.1 +this one\n\d+ +cpn on/,
    );
    const { tokens, sessions } = await shell.json(['token', 'list'], { env: one });
    expect([tokens, sessions.map((each: { is_current: boolean }) => each.is_current)]).toEqual([[], [true, false]]);
    const { id } = sessions[1];
    expect(await shell.json(['token', 'revoke', '--session', String(id), ...yes], { env: one })).toMatchObject({ id });
    expect((await shell.fail(['whoami'], other)).exitCode).toBe(4);
    const { stderr: removed } = await shell.cpn(['user', 'remove', email, ...yes]);
    expect(removed).toMatch(/^removed user m@.*\nrevoked enrolment keys: mine \(\d+\) of office \(1\)\n$/);
  });

  it.each<[string[], number, RegExp]>([
    [create('a@example.net', 'king'), 2, /--role "king" must be one of owner, admin, member, viewer/],
    [create('a@example.net', 'admin'), 2, /--password-file is missing, and there is no terminal/],
    [['user', 'create', '--role', 'admin'], 2, /--email is missing/],
    [
      ['user', 'remove', '--yes', 'absent@example.net'],
      2,
      /there is no user "absent@example\.net"; there are: "owner@example\.net" \(1\)/,
    ],
    [['user', 'remove', '--yes', 'owner@example.net'], 4, /refused/],
  ])('%j is no way', async (args, code, message) => {
    const { exitCode, stderr } = await shell.fail(args);
    expect([exitCode, stderr]).toEqual([code, expect.stringMatching(message)]);
  });
});

/** Moves the logins of all sessions six minutes back. */
function age(): void {
  const database = new DatabaseSync(join(shell.folder, 'data', 'control-plane.db'), { timeout: 10_000 });
  const start = new Date(Date.now() - 6 * 60_000).toISOString();
  database.prepare('UPDATE sessions SET created_at = ?').run(start);
  database.close();
}

describe('token', () => {
  it('is made, used, listed and revoked', async () => {
    expect((await shell.cpn(['token', 'list'])).stderr).toContain('there is no personal token');
    const { stdout, stderr } = await shell.cpn(['token', 'create', '--name', 'ci', '--expires-in-days', '90']);
    expect(stdout).toMatch(/^\S+\n$/);
    expect(stderr).toMatch(/valid until 20.*CPN_API_TOKEN=file:token/);
    const made = await shell.json(['token', 'create', '--name', 'cron']);
    expect(made).toEqual({ id: made.id, name: 'cron', access_token: expect.any(String), expires_at: null });

    // The token stands in for a login, given as itself or in a file.
    const elsewhere = { CPN_API_URL: plane.url, XDG_CONFIG_HOME: join(shell.folder, 'nowhere') };
    const tokenFile = await shell.write('token', stdout);
    for (const given of [made.access_token, `file:${tokenFile}`]) {
      expect(await shell.json(['whoami'], { env: { ...elsewhere, CPN_API_TOKEN: given } })).toMatchObject({
        role: 'owner',
      });
    }
    expect(await shell.fail(['whoami'], elsewhere)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('cpn login'),
    });

    age();
    const old = ['token', 'create', '--name', 'later'];
    expect(await shell.fail(old)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(/your login is more than 5 minutes ago; give --password-file, or run "cpn login"/),
    });
    const file = await shell.write('password', plane.password);
    const user = ['user', 'create', '--email', 'late@example.net', '--role', 'viewer', '--password-file', file];
    expect(await shell.fail(user)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(
        /a user needs your password, .* give --own-password-file, or run "cpn login" again/,
      ),
    });
    expect((await shell.type(user, [[/Your own password/, `${plane.password}\r`]])).exitCode).toBe(0);
    expect((await shell.fail(['user', 'update', 'late@example.net', '--role', 'member'])).exitCode).toBe(2);
    await shell.output(['user', 'update', 'late@example.net', '--role', 'member', '--own-password-file', file]);
    await shell.output(['user', 'remove', 'late@example.net', ...yes]);
    const typed = await shell.type(old, [[/Your own password/, `${plane.password}\r`]]);
    expect([typed.exitCode, typed.stdout]).toEqual([0, expect.stringMatching(/cpt_[\w-]{43}/)]);
    await shell.output(['token', 'create', '--name', 'last', '--password-file', file]);
    for (const name of ['later', 'last']) await shell.output(['token', 'revoke', name, ...yes]);

    const listed = await shell.output(['token', 'list']);
    expect(listed).toMatch(/^id +name +since +until +last used\n\d+ +ci +20/);
    expect(listed).not.toContain(stdout.trim());
    expect((await shell.json(['token', 'list'])).tokens).toHaveLength(2);
    const declined = await shell.type(['token', 'revoke', 'ci'], [[/Revoke token ci.*y\/n/, 'n\r']]);
    expect(declined.exitCode).toBe(1);
    expect((await shell.cpn(['token', 'revoke', '--yes', 'ci'])).stderr).toMatch(/^revoked token ci/);
    expect(await shell.json(['token', 'revoke', String(made.id), ...yes])).toEqual({ id: made.id, name: 'cron' });
    expect((await shell.fail(['whoami'], { ...elsewhere, CPN_API_TOKEN: made.access_token })).exitCode).toBe(4);
    expect((await shell.fail(['token', 'create', '--name', 'x', '--expires-in-days', '0'])).exitCode).toBe(2);
    expect((await shell.fail(['token', 'revoke', '--yes', 'ci'])).exitCode).toBe(2);
  });
});

describe('audit', () => {
  it('is read page by page, newest first', async () => {
    await shell.output(['network', 'update', 'office', '--description', 'for the audit']);
    const first = await shell.cpn(['audit', '--limit', '1']);
    expect(first.stdout).toMatch(
      /^id +when +who +what +on +from.*\n\d+ +20\S+ +user owner@example\.net \(1\) +network\.update +network office \(1\) +127\.0\.0\.1 +description: for the audit\n/,
    );
    const [, id] = /cpn audit --limit 1 --before (\d+)/.exec(first.stderr) ?? [];
    const page = await shell.json(['audit', '--limit', '2', '--before', String(id)]);
    expect(page.entries).toHaveLength(2);
    expect(page.entries[0].id).toBeLessThan(Number(id));
    expect(page.next).toBe(page.entries[1].id);
    expect(await shell.json(['audit', '--before', '1'])).toEqual({ entries: [], next: null });
    expect((await shell.cpn(['audit', '--before', '1'])).stderr).toContain('no entries before 1');
    for (const flag of [
      ['--limit', '0'],
      ['--limit', '10001'],
      ['--before', 'x'],
    ]) {
      expect((await shell.fail(['audit', ...flag])).exitCode).toBe(2);
    }
    const all = await shell.output(['audit', '--limit', '200', '--json']);
    expect(all).not.toMatch(/cp[a-z]_/);
  });
});

describe('api', () => {
  it('calls an operation of the control plane', async () => {
    const { stdout } = await shell.cpn(['api', 'GET', '/api/networks']);
    expect(JSON.parse(stdout).data).toMatchObject([{ name: 'office' }]);
    const added = [
      '--field',
      'name=wide',
      '--field',
      'private_cidr=10.80.0.0/24',
      '--field',
      'routes[]=192.168.70.0/24',
    ];
    const made = JSON.parse(await shell.output(['api', 'POST', '/api/networks', ...added])).data;
    expect(made).toMatchObject({ name: 'wide', routes: ['192.168.70.0/24'] });
    const path = `/api/networks/${made.id}`;
    expect(
      JSON.parse(await shell.output(['api', 'PATCH', path, '--input', '-'], { input: '{"routes":[]}' })).data.routes,
    ).toEqual([]);
    await shell.output(['api', 'DELETE', path]);
    const gone = await shell.cpn(['api', 'GET', path]);
    expect([gone.exitCode, gone.stderr]).toEqual([4, expect.stringContaining(`GET ${path} was refused (404)`)]);
  });

  it('lays JSON out on a terminal', async () => {
    const { stdout, exitCode } = await shell.type(['api', 'GET', '/api/auth/me'], []);
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining('{\r\n  "data": {\r\n    "id": 1,')]);
  });
});

describe('a session', () => {
  it('begins on a terminal with what is typed', async () => {
    const { exitCode, stdout } = await shell.type(
      ['login', '--email', plane.email],
      [
        [/URL of the control plane/, `${plane.url}\r`],
        [/Password/, `${plane.password}\r`],
      ],
    );
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining(`logged in at ${plane.url}`)]);
    expect(stdout).not.toContain(plane.password);
    expect(await shell.output(['whoami'])).toContain('owner@example.net, owner of');
  });

  it('does not begin where the prompt is ended', async () => {
    for (const key of ['\x03', '\x04']) {
      const login = ['login', '--email', plane.email];
      const begun: readonly [RegExp, string] = [/URL of the control plane/, `${plane.url}\r`];
      expect((await shell.type(login, [[/URL of the control plane/, key]])).exitCode).toBe(2);
      expect((await shell.type(login, [begun, [/Password/, key]])).exitCode).toBe(2);
    }
  });

  it('begins with a personal token, and takes no other', async () => {
    const home = { XDG_CONFIG_HOME: join(shell.folder, 'second') };
    const { access_token, id } = await shell.json(['token', 'create', '--name', 'second']);
    const file = await shell.write('second-token', access_token);
    const login = ['login', '--api', plane.url, '--token-file', file];
    expect(await shell.json(login, { env: home })).toEqual({ email: plane.email, role: 'owner', expires_at: null });
    expect(await shell.json(['whoami'], { env: home })).toMatchObject({ email: plane.email });
    await shell.output(['token', 'revoke', '--yes', String(id)]);
    expect(await shell.fail(['whoami'], home)).toMatchObject({ exitCode: 4 });
    // Logout works although the token is no longer valid.
    const mixed = await shell.fail(['logout'], { ...home, CPN_API_TOKEN: 'file:/none' });
    expect([mixed.exitCode, mixed.stderr]).toEqual([
      2,
      expect.stringMatching(/^cpn: CPN_API_TOKEN is set, .*unset it/),
    ]);
    expect((await shell.cpn(['logout'], { env: home })).stderr).toBe('logged out\n');
    expect(existsSync(join(home.XDG_CONFIG_HOME, 'cpn/login.json'))).toBe(false);
    expect((await shell.fail(login, home)).exitCode).toBe(4);
    expect((await shell.fail(['login', '--api', plane.url, '--token-file', '/nowhere'], home)).exitCode).toBe(2);
  });

  it('does not begin with a wrong password, without an address, or where no control plane answers', async () => {
    const wrong = await shell.write('wrong', 'wrong password here');
    const flags = ['--email', plane.email, '--password-file', wrong];
    expect((await shell.fail(['login', '--api', plane.url, ...flags])).exitCode).toBe(4);
    expect((await shell.fail(['login', ...flags])).exitCode).toBe(2);
    expect((await shell.fail(['login', '--api', plane.url])).stderr).toContain(
      '--email is missing; or use --token-file, or --no-browser to log in with a code',
    );
    const call = ['api', 'GET', '/x', '--timeout', '1', '--api', 'http://127.0.0.1:9'];
    const { exitCode, stderr } = await shell.fail(call, { CPN_API_TOKEN: 'x' });
    expect([exitCode, stderr]).toEqual([5, expect.stringContaining('http://127.0.0.1:9 is unreachable')]);
  });

  it('sends its token to no other control plane', async () => {
    expect(await shell.fail(['network', 'list', '--api', 'http://127.0.0.1:9'])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('not logged in at http://127.0.0.1:9'),
    });
  });
});
