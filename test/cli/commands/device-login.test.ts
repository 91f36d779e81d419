import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { login } from '../../../src/cli/commands/login.ts';
import { exitCodeOf } from '../../../src/cli/exit-code.ts';
import { Input } from '../../../src/cli/input/input.ts';
import {
  type Answer,
  type Conduct,
  json,
  type ReceivedRequest,
  startForeignService,
} from '../../plain/foreign-service.ts';

let folder: string;
let printed: string;
let said: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cpn-device-'));
  [printed, said] = ['', ''];
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    printed += String(text);
    return true;
  });
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    said += String(text);
    return true;
  });
  // The browser: it keeps the page that it is to open.
  await writeFile(
    join(folder, 'xdg-open'),
    `#!/bin/sh\nprintf %s "$1" >${folder}/part && mv ${folder}/part ${folder}/page\n`,
  );
  await chmod(join(folder, 'xdg-open'), 0o755);
  vi.stubEnv('PATH', `${folder}:${process.env.PATH}`);
});
afterEach(async () => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true, force: true });
});

const root = '/api/auth/device-codes';
const description = { openapi: '3.1.0', paths: { [`${root}/token`]: { post: {} } } };
const pending: Answer = (response) =>
  json(response, 400, { message: 'no user has approved it', error: 'authorization_pending' });
const session: Answer = (response) =>
  json(response, 200, {
    data: { access_token: 'cpu_new', token_type: 'Bearer', expires_at: '2030-01-01T00:00:00.000Z' },
  });
const refuse =
  (error: string): Answer =>
  (response) =>
    json(response, 400, { message: `it is ${error}`, error });
const me: Answer = (response) => json(response, 200, { data: { id: 5, email: 'me@example.net', role: 'owner' } });

/** A service whose logins are approved in its console, and that answers polls in this order. */
async function logIn(
  polls: readonly Answer[],
  {
    flags = {},
    variables = {},
    answers = {},
    ...conduct
  }: { flags?: object; variables?: Record<string, string> } & Partial<Conduct> = {},
) {
  let count = 0;
  const starts: ReceivedRequest[] = [];
  const service = await startForeignService({
    description,
    ...conduct,
    answers: {
      [`POST ${root}`]: (response, asked) => {
        starts.push(asked);
        const page = `${service.url}/#/device`;
        const codes = { device_code: 'cpd_secret', user_code: 'BCDF-GHJK' };
        const pages = { verification_uri: page, verification_uri_complete: `${page}/BCDF-GHJK` };
        json(response, 201, { data: { ...codes, ...pages, expires_in: 600, interval: 1 } });
      },
      [`POST ${root}/token`]: (response, asked) => {
        count += 1;
        (polls[Math.min(count, polls.length) - 1] ?? pending)(response, asked);
      },
      'GET /api/auth/me': me,
      ...answers,
    },
  });
  const environment = { XDG_CONFIG_HOME: join(folder, 'config'), ...variables };
  const done = login.run(new Input({ api: service.url, ...flags }, login.flags, environment));
  done.catch(() => {});
  return { service, done, starts, polls: () => service.received.filter(({ path }) => path === `${root}/token`) };
}

const stored = () => readFile(join(folder, 'config', 'cpn', 'login.json'), 'utf8').catch(() => null);
const byCode = { flags: { browser: false } };

describe('with a code', () => {
  it('shows the page and the code, waits for the approval, and stores the session', async () => {
    const { done, starts, polls, service } = await logIn([pending, session], byCode);
    expect(await done).toBe(0);
    expect(said).toContain(
      `open ${service.url}/#/device in a browser, and type the code BCDF-GHJK\nor open ${service.url}/#/device/BCDF-GHJK\n`,
    );
    expect(said + printed).not.toMatch(/cpd_secret|cpu_new/);
    expect(printed).toMatch(/^logged in at http\S+ as me@example\.net, owner\n$/);
    expect(starts.map(({ body }) => body)).toEqual([{ device_name: expect.stringMatching(/^cpn on ./) }]);
    expect(polls().map(({ body }) => body)).toEqual([{ device_code: 'cpd_secret' }, { device_code: 'cpd_secret' }]);
    expect(await stored()).toContain('cpu_new');
    expect(JSON.parse((await stored()) ?? '')).toMatchObject({ session: true });
  });

  it('prints one document with --json, whose address is that of the profile', async () => {
    const { done } = await logIn([session], { flags: { browser: false, json: true } });
    expect(await done).toBe(0);
    expect(JSON.parse(printed)).toEqual({
      email: 'me@example.net',
      role: 'owner',
      expires_at: '2030-01-01T00:00:00.000Z',
    });
  });

  it.each(['access_denied', 'expired_token'])('ends with exit code 4 for %s', async (error) => {
    const { done } = await logIn([pending, refuse(error)], byCode);
    const failure = await done.catch((each: unknown) => each);
    expect(String(failure)).toContain(`it is ${error}; run "cpn login" again`);
    expect([exitCodeOf(failure), await stored()]).toEqual([4, null]);
  });

  it('goes on after a restart of the service, and polls less often where that is requested', async () => {
    const hangUp: Answer = (response: ServerResponse) => void response.destroy();
    const busy: Answer = (response) => json(response, 503, { message: 'starting' });
    const { done, polls } = await logIn([hangUp, busy, session], byCode);
    expect(await done).toBe(0);
    expect(polls()).toHaveLength(3);
    expect(said.match(/the login goes on/g)).toHaveLength(1);
  });

  it('pauses 5 s longer after slow_down', async () => {
    const { done, polls } = await logIn([refuse('slow_down'), session], byCode);
    await sleep(3_000);
    expect(polls()).toHaveLength(1);
    expect(await done).toBe(0);
  }, 15_000);

  it('ends the session that cannot be stored', async () => {
    await writeFile(join(folder, 'config'), 'no folder');
    const { done, service } = await logIn([session], byCode);
    await expect(done).rejects.toThrow();
    expect(service.requests.at(-1)).toBe('POST /api/auth/logout');
  });

  it.each(['javascript:alert(1)', 'file:///etc/passwd', '--help', ''])(
    'opens and shows no page at %j',
    async (page) => {
      const { done } = await logIn([session], {
        flags: { browser: true },
        variables: { DISPLAY: ':0' },
        answers: {
          [`POST ${root}`]: (response) =>
            json(response, 201, {
              data: {
                device_code: 'a',
                user_code: 'b',
                verification_uri: page,
                verification_uri_complete: page,
                expires_in: 1,
                interval: 1,
              },
            }),
        },
      });
      await expect(done).rejects.toThrow('names a console that is not at an http(s) URL');
      expect(await readFile(join(folder, 'page'), 'utf8').catch(() => null)).toBeNull();
    },
  );
});

describe('with a browser on this machine', () => {
  const screen = { flags: { browser: true }, variables: { DISPLAY: ':0' } };
  const opened = () =>
    vi.waitFor(async () => new URL(await readFile(join(folder, 'page'), 'utf8')), { timeout: 5_000 });
  /** What the console knows from the page, and goes to. */
  const returnTo = async (starts: readonly ReceivedRequest[]) => {
    const page = await opened();
    const [, code, state = ''] = /^#\/device\/([A-Z-]+)\?state=([\w-]{43})$/.exec(page.hash) ?? [];
    expect(code).toBe('BCDF-GHJK');
    const port = starts[0]?.body?.redirect_port;
    return { port, state, at: (query: string) => `http://127.0.0.1:${port}/?${query}` };
  };

  it('opens the page, and gets the session with the code that the console brings and its own verifier', async () => {
    const { done, starts, polls } = await logIn([session], screen);
    const { at, state, port } = await returnTo(starts);
    for (const [url, headers] of [
      [at('code=stolen&state=guessed'), {}],
      [at(`state=${state}`), {}],
      [`http://127.0.0.1:${port}/other?code=stolen&state=${state}`, {}],
    ] as const)
      expect((await fetch(url, { headers })).status).toBe(404);
    expect((await fetch(at(`code=stolen&state=${state}`), { method: 'POST' })).status).toBe(404);
    expect(polls()).toEqual([]);
    const reply = await fetch(at(`code=cpd_code&state=${state}`));
    expect([reply.status, await reply.text()]).toEqual([
      200,
      'cpn received the approval. You can close this window.\n',
    ]);
    expect(reply.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(await done).toBe(0);
    const [{ code_verifier, ...rest }] = polls().map(({ body }) => body ?? {}) as [Record<string, string>];
    expect(rest).toEqual({ device_code: 'cpd_secret', code: 'cpd_code' });
    const { createHash } = await import('node:crypto');
    const challenge = createHash('sha256')
      .update(code_verifier ?? '')
      .digest('base64url');
    expect(starts[0]?.body?.code_challenge).toBe(challenge);
    expect(said).toContain('approve the login BCDF-GHJK in your browser');
    expect(said).not.toMatch(new RegExp(`cpd_|${code_verifier}`));
    // Nothing listens any more.
    await expect(fetch(at('code=late'))).rejects.toThrow();
  });

  it('listens on the loopback address alone, and ignores names that lead to it', async () => {
    const { done, starts } = await logIn([session], screen);
    const { port, state } = await returnTo(starts);
    const { request } = await import('node:http');
    const ask = (host: string) =>
      new Promise((resolve) =>
        request(
          { host: '127.0.0.1', port: Number(port), path: `/?code=x&state=${state}`, headers: { host } },
          (response) => resolve(response.resume().statusCode),
        ).end(),
      );
    expect([await ask(`evil.test:${port}`), await ask('127.0.0.1')]).toEqual([404, 404]);
    expect(await ask(`127.0.0.1:${port}`)).toBe(200);
    expect(await done).toBe(0);
  });

  it('ends at once where the user refuses', async () => {
    const { done, starts } = await logIn([refuse('access_denied')], screen);
    const { at, state } = await returnTo(starts);
    expect(await (await fetch(at(`error=access_denied&state=${state}`))).text()).toContain('cpn does not log in');
    await expect(done).rejects.toThrow('it is access_denied');
  });

  it.each<[string, Record<string, string>]>([
    ['over SSH', { DISPLAY: 'localhost:10.0', SSH_CONNECTION: '192.0.2.1 1 192.0.2.2 22' }],
    ['under sudo', { DISPLAY: ':0', SUDO_UID: '1000' }],
    ['without a screen', {}],
  ])('is not used %s', async (_, variables) => {
    const { done, starts } = await logIn([session], { flags: { browser: true }, variables });
    expect(await done).toBe(0);
    expect(starts.map(({ body }) => Object.keys(body ?? {}))).toEqual([['device_name']]);
    expect(said).toContain('type the code BCDF-GHJK');
  });

  it.each(['exit 3', null])('gives way to a code where no browser opens: %j', async (script) => {
    if (script === null) {
      await rm(join(folder, 'xdg-open'));
      vi.stubEnv('PATH', folder);
    } else await writeFile(join(folder, 'xdg-open'), `#!/bin/sh\n${script}\n`);
    const { done } = await logIn([session], screen);
    expect(await done).toBe(0);
    expect(said).toMatch(/no browser could be opened on this machine\n[\s\S]*type the code BCDF-GHJK/);
  });

  it('waits for no browser that lasts', async () => {
    await writeFile(join(folder, 'xdg-open'), `#!/bin/sh\nprintf %s "$1" >${folder}/page\nexec sleep 20\n`);
    const { done, starts } = await logIn([session], screen);
    const { at, state } = await returnTo(starts);
    await fetch(at(`code=cpd_code&state=${state}`));
    expect(await done).toBe(0);
  });
});

describe('the console is not used', () => {
  it.each<[string, object, RegExp]>([
    ['without a terminal', {}, /^WrongUsage: --email is missing; or use --token-file/],
    ['with --email', { email: 'me@example.net' }, /^WrongUsage: --password-file is missing/],
  ])('%s', async (_, flags, message) => {
    const { done, starts } = await logIn([session], { flags });
    expect(String(await done.catch((error: unknown) => error))).toMatch(message);
    expect(starts).toEqual([]);
  });

  it.each<[string, Partial<Conduct>]>([
    ['by a service that describes none', { description: null }],
    [
      'by a service without a console',
      { answers: { [`POST ${root}`]: (response) => json(response, 404, { message: 'no console' }) } },
    ],
  ])('%s: it takes a password, for which there is no terminal', async (_, conduct) => {
    const { done } = await logIn([session], { ...byCode, ...conduct });
    await expect(done).rejects.toThrow('--email is missing; or use --token-file');
  });
});

it('opens the console at the address of the service, whose scheme and path a proxy may hide', async () => {
  const { done, service } = await logIn([session], {
    ...byCode,
    answers: {
      [`POST ${root}`]: (response) =>
        json(response, 201, {
          data: {
            ...{ device_code: 'a', user_code: 'BCDF-GHJK', verification_uri: 'https://127.0.0.1/#/device' },
            ...{ verification_uri_complete: 'https://127.0.0.1/#/device/BCDF-GHJK', expires_in: 60, interval: 1 },
          },
        }),
    },
  });
  expect(await done).toBe(0);
  expect(said).toContain(`or open ${service.url}/#/device/BCDF-GHJK\n`);
});
