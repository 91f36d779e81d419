import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { login } from '../../../src/cli/commands/login.ts';
import { whoami } from '../../../src/cli/commands/session.ts';
import { Input } from '../../../src/cli/input/input.ts';
import { type Conduct, foreignPassword, foreignToken, json, startForeignService } from '../../plain/foreign-service.ts';

let folder: string;
let printed: string[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cpn-login-'));
  await writeFile(join(folder, 'password'), foreignPassword, { mode: 0o600 });
  await writeFile(join(folder, 'token'), foreignToken, { mode: 0o600 });
  printed = [];
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => printed.push(String(text)) > 0);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await rm(folder, { recursive: true, force: true });
});

async function logIn(conduct: Partial<Conduct> = {}, flags: Record<string, unknown> = {}) {
  const service = await startForeignService(conduct);
  const environment = { XDG_CONFIG_HOME: join(folder, 'config') };
  const usual = { email: 'me@example.net', 'password-file': join(folder, 'password') };
  const given = 'token-file' in flags ? flags : { ...usual, ...flags };
  const input = new Input({ api: service.url, ...given }, login.flags, environment);
  const ask = () => whoami.run(new Input({}, whoami.flags, environment));
  return { service, ask, done: login.run(input) };
}

const stored = () => readFile(join(folder, 'config', 'cpn', 'login.json'), 'utf8').catch(() => null);

describe('a login', () => {
  it.each<[string, object | string | null]>([
    ['nothing', null],
    ['no JSON', 'welcome'],
    ['an empty object', {}],
    ['a list', []],
    ['fields of other types', { data: { email: 7, role: ['owner'], organization: 'Example' } }],
  ])('needs of the profile only that it is there: %s', async (_, profile) => {
    const { ask, done } = await logIn({
      answers: {
        'GET /api/auth/me': (response) => {
          if (profile !== null && typeof profile !== 'string') return json(response, 200, profile);
          return response.writeHead(200).end(profile ?? '');
        },
      },
    });
    expect(await done).toBe(0);
    expect(await stored()).toContain(foreignToken);
    expect(printed.join('')).toMatch(/logged in.* at http\S+ as me@example\.net\n$/);
    expect(await ask()).toBe(0);
    expect(printed.at(-1)).toContain('the token is valid');
  });

  it('says what the service says of role and organization, whose ids are its own', async () => {
    const profile = { email: 'you@example.net', role: 'superuser', organization: { id: 'org_Zz-9', name: 'Example' } };
    const answers: Conduct['answers'] = { 'GET /api/auth/me': (response) => json(response, 200, { user: profile }) };
    expect(await (await logIn({ answers })).done).toBe(0);
    expect(printed.join('')).toContain('as you@example.net, superuser of Example');
    expect(await (await logIn({ answers }, { json: true })).done).toBe(0);
    expect(JSON.parse(printed.at(-1) ?? '')).toEqual({ email: 'you@example.net', role: 'superuser', expires_at: null });
  });

  it('that fails after the session was opened ends the session', async () => {
    const { service, done } = await logIn({
      answers: { 'GET /api/auth/me': (response) => json(response, 403, { message: 'No.' }) },
    });
    await expect(done).rejects.toThrow('No');
    expect(service.requests.at(-1)).toBe('POST /api/auth/logout');
    expect(service.received.at(-1)?.headers.authorization).toBe(`Bearer ${foreignToken}`);
    expect(await stored()).toBeNull();
  });

  it('that cannot be stored ends the session', async () => {
    await writeFile(join(folder, 'config'), 'no folder');
    const { service, done } = await logIn();
    await expect(done).rejects.toThrow();
    expect(service.requests.at(-1)).toBe('POST /api/auth/logout');
  });

  it('with a token that was there before ends nothing', async () => {
    const { service, done } = await logIn(
      { answers: { 'GET /api/auth/me': (response) => json(response, 401, {}) } },
      { 'token-file': join(folder, 'token') },
    );
    await expect(done).rejects.toThrow(/401.*; give --token-file a token .* not the one in .*token$/);
    expect(service.requests).toEqual(['GET /api/auth/me']);
  });

  it('in the place of another ends the session of that, and no personal token', async () => {
    const answers: Conduct['answers'] = {
      'POST /api/auth/login': (response) => json(response, 200, { token: 'first' }),
    };
    const first = await logIn({ answers });
    expect(await first.done).toBe(0);
    const byToken = await logIn({}, { 'token-file': join(folder, 'token') });
    expect(await byToken.done).toBe(0);
    expect(first.service.requests.at(-1)).toBe('POST /api/auth/logout');
    expect(first.service.received.at(-1)?.headers.authorization).toBe('Bearer first');
    const last = await logIn();
    expect(await last.done).toBe(0);
    expect(byToken.service.requests).toEqual(['GET /api/auth/me']);
    expect(last.service.requests).not.toContain('POST /api/auth/logout');
  });

  it.each(['email', 'password-file'])('takes a token or --%s', async (flag) => {
    const { service, done } = await logIn({}, { 'token-file': join(folder, 'token'), [flag]: 'x' });
    await expect(done).rejects.toThrow(`--${flag} and --token-file exclude each other`);
    expect(service.requests).toEqual([]);
  });

  it('stands, with its own error, where the session cannot be ended', async () => {
    const warned = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    const { done } = await logIn({
      answers: {
        'GET /api/auth/me': (response) => json(response, 403, { message: 'No.' }),
        'POST /api/auth/logout': (response) => json(response, 404, {}),
      },
    });
    await expect(done).rejects.toThrow('No');
    expect(warned.mock.calls.join()).toContain('the new session is still open');
  });
});

it('a token of CPN_API_TOKEN that the service does not take is named with the variable', async () => {
  const service = await startForeignService({
    answers: { 'GET /api/auth/me': (response) => json(response, 401, { message: 'Unauthenticated.' }) },
  });
  const environment = { XDG_CONFIG_HOME: join(folder, 'config'), CPN_API_TOKEN: 'other' };
  const asked = whoami.run(new Input({ api: service.url }, whoami.flags, environment));
  await expect(asked).rejects.toThrow(/\(401\): Unauthenticated; replace the token in CPN_API_TOKEN .*or unset/);
});
