import type { AdminService, OpenSession, Token } from '../../api/admin-service.ts';
import { printable, WrongUsage } from '../../core/errors/index.ts';
import { findNamed, openAdmin } from '../admin.ts';
import { exitCodes } from '../exit-code.ts';
import { confirm } from '../input/confirm.ts';
import { apiFlags, jsonFlag, yesFlag } from '../input/flags.ts';
import type { Input } from '../input/input.ts';
import { withOwnPassword } from '../input/own-password.ts';
import { note, print, printJson, printOnlyCopy, table, toJson } from '../output/output.ts';
import type { Command } from '../parse/command.ts';
import { createLimitFormat, networkLimitFlags, readNetworkLimit } from '../parse/network-limit-flags.ts';
import { findUser } from './user.ts';

const userFlag = { kind: 'text', value: 'USER' } as const;

export const listTokens: Command = {
  name: 'token list',
  summary: 'List your personal tokens and your sessions, or the sessions of a user, without their values',
  flags: {
    ...apiFlags,
    ...jsonFlag,
    user: { ...userFlag, summary: 'list the sessions of this user; owners and admins' },
  },
  examples: ['cpn token list', 'cpn token list --user you@example.net'],
  async run(input) {
    const service = await openAdmin(input);
    if (input.has('user')) return listSessionsOf(service, input);
    const [tokens, sessions] = await Promise.all([service.listTokens(), service.listSessions()]);
    if (input.switch('json')) {
      printJson({ tokens, ...(sessions !== null && { sessions }) });
      return exitCodes.done;
    }
    if (tokens.length === 0) note('there is no personal token; create one with "cpn token create"');
    else print(await describeTokens(service, tokens));
    if (sessions !== null && sessions.length > 0)
      print(`${tokens.length > 0 ? '\n' : ''}${describeSessions(sessions)}`);
    return exitCodes.done;
  },
};

async function listSessionsOf(service: AdminService, input: Input): Promise<number> {
  const { id, email } = await findUser(service, input.text('user'));
  const sessions = await service.listUserSessions(id);
  if (input.switch('json')) printJson({ sessions });
  else if (sessions.length === 0) note(`${printable(email)} has no session`);
  else print(describeSessions(sessions));
  return exitCodes.done;
}

async function describeTokens(service: AdminService, tokens: readonly Token[]): Promise<string> {
  const { isAny, format } = await createLimitFormat(service, tokens);
  return table(
    ['id', 'name', 'since', 'until', 'last used', ...(isAny ? ['networks'] : [])],
    tokens.map((token) => [
      String(token.id),
      token.name,
      token.created_at,
      token.expires_at ?? '-',
      token.last_used_at ?? 'never',
      ...(isAny ? [format(token)] : []),
    ]),
  );
}

function describeSessions(sessions: readonly OpenSession[]): string {
  return table(
    ['session', 'device', 'since', 'until', 'last used', 'from', ''],
    sessions.map(({ id, device_name, created_at, expires_at, last_used_at, address, is_current }) => [
      String(id),
      device_name || '-',
      created_at,
      expires_at,
      last_used_at ?? '-',
      address ?? '-',
      is_current ? 'this one' : '',
    ]),
  );
}

export const createToken: Command = {
  name: 'token create',
  summary: 'Create a personal token with your permissions; prints it once, alone on stdout',
  flags: {
    ...apiFlags,
    ...jsonFlag,
    name: { kind: 'text', value: 'NAME', summary: 'what the token is for' },
    'expires-in-days': { kind: 'text', value: '1..365', summary: 'how long it is valid', byDefault: 'until revoked' },
    ...networkLimitFlags,
    'password-file': {
      kind: 'text',
      value: 'PATH',
      summary: 'file that holds only your password; needed 5 minutes after your login, prompts on a terminal',
    },
  },
  examples: [
    '(umask 077; cpn token create --name ci --expires-in-days 90 >token)',
    '(umask 077; cpn token create --name ci --network office >token)',
  ],
  async run(input) {
    const name = input.need('name');
    const days = input.number('expires-in-days', 1, 365);
    const service = await openAdmin(input);
    const networks = await readNetworkLimit(service, input, 'token-networks');
    const fields = { name, ...(days !== undefined && { expires_in_days: days }), ...(networks && { networks }) };
    const proof = { flag: 'password-file', field: 'password', what: 'a token' };
    const token = await withOwnPassword(input, proof, (password) => service.createToken({ ...fields, password }));
    const value = token.access_token.reveal();
    const { id, expires_at } = token;
    const isJson = input.switch('json');
    await printOnlyCopy({
      what: `the token ${printable(token.name)} (${id})`,
      text: isJson
        ? toJson({ id, name: token.name, access_token: value, expires_at, ...(networks && { networks }) })
        : value,
      revoke: () => service.deleteToken(id),
      remedy: `cpn token revoke ${id}`,
    });
    if (isJson) return exitCodes.done;
    const { isAny, format } = await createLimitFormat(service, [token]);
    if (isAny) note(`limited to networks: ${printable(format(token))}`);
    const until = token.expires_at === null ? 'until it is revoked' : `until ${token.expires_at}`;
    note(`valid ${until}; use it as CPN_API_TOKEN=file:token, or with: cpn login --api URL --token-file token`);
    return exitCodes.done;
  },
};

export const revokeToken: Command = {
  name: 'token revoke',
  argument: { usage: '<token>', summary: 'id or name of one of your personal tokens; with --session, of a session' },
  summary: 'Revoke a personal token, or end a session',
  flags: {
    ...apiFlags,
    ...jsonFlag,
    ...yesFlag,
    session: { kind: 'switch', summary: 'end one of your sessions' },
    user: { ...userFlag, summary: 'with --session: end one of this user, or all with "all"; owners and admins' },
  },
  examples: [
    'cpn token revoke ci --yes',
    'cpn token revoke --session 17 --yes',
    'cpn token revoke --session all --user you@example.net --yes',
  ],
  async run(input) {
    if (input.has('user') && !input.switch('session')) {
      throw new WrongUsage('--user goes with --session: only the user can revoke a personal token; leave out --user');
    }
    const service = await openAdmin(input);
    if (input.has('user')) return endSessionsOf(service, input);
    if (input.switch('session')) return endSession(service, input);
    const { id, name } = findNamed(await service.listTokens(), input.argument('token') ?? '', 'token');
    if (!(await confirm(`Revoke token ${name} (${id})?`, input))) return exitCodes.failed;
    await service.deleteToken(id);
    if (input.switch('json')) printJson({ id, name });
    else note(`revoked token ${printable(name)} (${id})`);
    return exitCodes.done;
  },
};

async function endSession(service: AdminService, input: Input): Promise<number> {
  const sessions = await service.listSessions();
  if (sessions === null) throw new WrongUsage('this control plane does not list sessions; "cpn logout" ends your own');
  const { id, name, is_current: isOwn } = findSession(sessions, input);
  if (!(await confirm(`End session ${id} (${name})${isOwn ? ', which is this one' : ''}?`, input))) {
    return exitCodes.failed;
  }
  await service.deleteSession(id);
  if (input.switch('json')) printJson({ id, device_name: name });
  else note(`ended session ${id} (${printable(name)})`);
  return exitCodes.done;
}

/** Ends a session of another user, or all of them. */
async function endSessionsOf(service: AdminService, input: Input): Promise<number> {
  const user = await findUser(service, input.text('user'));
  const email = printable(user.email);
  if (input.argument('token') === 'all') {
    if (!(await confirm(`End all sessions of ${email}?`, input))) return exitCodes.failed;
    const { sessions_ended: ended } = await service.endUserSessions(user.id);
    if (input.switch('json')) printJson({ user: user.id, sessions_ended: ended });
    else note(`ended the sessions of ${email}${ended === null ? '' : `: ${ended}`}`);
    return exitCodes.done;
  }
  const { id, name } = findSession(await service.listUserSessions(user.id), input);
  if (!(await confirm(`End session ${id} (${name}) of ${email}?`, input))) return exitCodes.failed;
  await service.endUserSession(user.id, id);
  if (input.switch('json')) printJson({ user: user.id, id, device_name: name });
  else note(`ended session ${id} (${printable(name)}) of ${email}`);
  return exitCodes.done;
}

function findSession(sessions: readonly OpenSession[], input: Input) {
  const named = sessions.map((session) => ({ ...session, name: session.device_name }));
  return findNamed(named, input.argument('token') ?? '', 'session');
}
