import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { keepSession, logout } from '../../../src/cli/commands/session.ts';
import { Input } from '../../../src/cli/input/input.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { readLogin, writeLogin } from '../../../src/store/login-file.ts';
import { type Answer, json, startForeignService } from '../../plain/foreign-service.ts';

let folder: string;
let said: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cpn-session-'));
  said = '';
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    said += String(text);
    return true;
  });
});
afterEach(async () => {
  vi.restoreAllMocks();
  await rm(folder, { recursive: true });
});

const place = () => join(folder, 'cpn');
const stored = () => readFile(join(place(), 'login.json'), 'utf8').catch(() => null);

/** A service with a login that is stored for it, and the input of a command. */
async function prepare(answer: Answer | null, variables: Readonly<Record<string, string>> = {}) {
  const service = await startForeignService({ answers: answer === null ? {} : { 'POST /api/auth/logout': answer } });
  await writeLogin(place(), { service: service.address, token: new Secret('first'), session: false }, () => {});
  const input = new Input({}, logout.flags, { XDG_CONFIG_HOME: folder, ...variables });
  const ended = () =>
    service.received.filter(({ path }) => path.endsWith('/logout')).map(({ headers }) => headers.authorization);
  return { service, input, ended };
}

describe('a logout', () => {
  it.each<[string, Answer | null]>([
    ['ends the session', null],
    ['of a session that has ended already', (response) => json(response, 401, { message: 'Unauthenticated.' })],
  ])('%s, and then deletes the login', async (_, answer) => {
    const { input, ended } = await prepare(answer);
    expect(await logout.run(input)).toBe(0);
    expect([ended(), await stored(), said]).toEqual([['Bearer first'], null, 'logged out\n']);
  });

  it.each([403, 404, 500])('that fails with %i keeps the login, whose session is still open', async (status) => {
    const { input } = await prepare((response) => json(response, status, { message: 'No.' }));
    await expect(logout.run(input)).rejects.toThrow();
    expect([await stored(), said]).toEqual([expect.stringContaining('first'), '']);
  });

  it('does not end the stored login for a token of CPN_API_TOKEN', async () => {
    const { input, ended } = await prepare(null, { CPN_API_TOKEN: 'other' });
    await expect(logout.run(input)).rejects.toThrow('CPN_API_TOKEN is set');
    expect([ended(), await stored()]).toEqual([[], expect.stringContaining('first')]);
  });
});

describe('a session that a change of the password opened', () => {
  const session = { token: new Secret('second'), expiresAt: null };

  it('takes the place of the stored login', async () => {
    const { service, input, ended } = await prepare(null);
    await keepSession(input, service.address, session);
    const login = await readLogin(place(), () => {});
    expect([login?.token.reveal(), login?.session, login?.service.url]).toEqual(['second', true, service.url]);
    expect([ended(), said]).toEqual([[], '']);
  });

  it('is ended where the token is that of CPN_API_TOKEN, and the stored login stays', async () => {
    const { service, input, ended } = await prepare(null, { CPN_API_TOKEN: 'other' });
    await keepSession(input, service.address, session);
    expect([ended(), await stored()]).toEqual([['Bearer second'], expect.stringContaining('first')]);
    expect(said).toContain('the session in CPN_API_TOKEN ended too; log in again');
  });

  it('that cannot be ended is a warning: the password is changed already', async () => {
    const refuse: Answer = (response) => json(response, 500, { message: 'No.' });
    const { service, input } = await prepare(refuse, { CPN_API_TOKEN: 'other' });
    await keepSession(input, service.address, session);
    expect(said).toContain('the new session is not stored; log in again with "cpn login"');
  });
});
