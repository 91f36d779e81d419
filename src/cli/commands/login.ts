import { hostname } from 'node:os';
import type { AdminService, Profile } from '../../api/admin-service.ts';
import type { Remedies } from '../../api/http/error-reply.ts';
import { confirmListener } from '../../app/access.ts';
import type { Secret } from '../../core/crypto/secret.ts';
import { CpnError, printable, Refused, WrongUsage } from '../../core/errors/index.ts';
import { type ServiceAddress, withAuthorities } from '../../core/net/service-address.ts';
import type { Login } from '../../store/login-file.ts';
import { connectAdmin, describeProfile, loginFolder } from '../admin.ts';
import { findListeningUser } from '../context.ts';
import { exitCodes } from '../exit-code.ts';
import { apiFlags, jsonFlag } from '../input/flags.ts';
import type { Input } from '../input/input.ts';
import { hasTerminal, obtainPassword } from '../input/password.ts';
import { prompt } from '../input/prompt.ts';
import { readToken } from '../input/secrets.ts';
import { needServiceAddress, withEnvironmentProxy } from '../input/service-address.ts';
import { green, print, printJson, warn } from '../output/output.ts';
import type { Command } from '../parse/command.ts';
import { logInOnPage } from './device-login.ts';

export const login: Command = {
  name: 'login',
  summary: 'Log in to a control plane: in its console, or with e-mail and password',
  flags: {
    ...apiFlags,
    ...jsonFlag,
    email: { kind: 'text', value: 'EMAIL', summary: 'e-mail address to log in with, instead of the console' },
    browser: {
      kind: 'switch',
      summary: 'open the console on this machine; --no-browser shows a code for a browser anywhere',
      byDefault: 'yes',
    },
    'password-file': { kind: 'text', value: 'PATH', summary: 'file that holds only the password' },
    'token-file': {
      kind: 'text',
      value: 'PATH',
      summary: 'file with a personal token, instead of e-mail and password',
    },
  },
  examples: ['cpn login --api https://cp.example.net', 'cpn login --api https://cp.example.net --email me@example.net'],
  async run(input) {
    const folder = loginFolder(input);
    const before = await (await import('../../store/login-file.ts')).readLogin(folder).catch(() => null);
    const named = await confirmAddress(await needServiceAddress(input, askAddress), before);
    const isKept = !input.has('ca-file') && before?.service.url === named.url;
    const service = isKept ? withAuthorities(named, before.service.authorities) : named;
    const { environment } = input;
    const reached = withEnvironmentProxy(service, environment);
    const token = await obtainToken(input, reached);
    const admin = await connectAdmin(reached, token.value, { remedies: token.remedies });
    const profile = await keepLogin(input, service, admin, token).catch(async (error) => {
      if (token.isSession) await endSession(admin, 'the new session is still open');
      throw error;
    });
    if (before?.session && before.token.reveal() !== token.value.reveal()) {
      const at = withEnvironmentProxy(before.service, environment);
      const previous = await connectAdmin(at, before.token, { attempts: 1, deadlineMs: 5_000 });
      await endSession(previous, `the previous session at ${before.service.url} is still open`);
    }
    const email = profile.email ?? token.email;
    if (input.switch('json')) printJson({ email, role: profile.role, expires_at: token.expiresAt });
    else print(`${green('logged in')} at ${service.url}${printable(describeProfile({ ...profile, email }, ' as '))}`);
    return exitCodes.done;
  },
};

/** Adds the listening program's user, which the login confirms before it reads the password. */
export async function confirmAddress(service: ServiceAddress, before: Login | null): Promise<ServiceAddress> {
  const known = before?.service.url === service.url ? before.service : undefined;
  return confirmListener({ findListeningUser, warn }, service, known?.listener);
}

/** Stores an accepted token, and only the proxy of `--proxy`: the environment may change. */
async function keepLogin(
  input: Input,
  service: ServiceAddress,
  admin: AdminService,
  token: LoginToken,
): Promise<Profile> {
  const profile = await admin.profile();
  const { writeLogin } = await import('../../store/login-file.ts');
  await writeLogin(loginFolder(input), { service, token: token.value, session: token.isSession }, warn);
  return profile;
}

/** Ends the session of a login that failed or was replaced. */
export async function endSession(admin: AdminService, otherwise: string): Promise<void> {
  await admin.logout().catch((error) => {
    if (!(error instanceof CpnError)) throw error;
    // The session has already ended.
    if (!(error instanceof Refused && error.status === 401)) warn(`${otherwise}: ${error.message}`);
  });
}

interface LoginToken {
  readonly value: Secret;
  readonly expiresAt: string | null;
  /** True if this login opened a session for it. */
  readonly isSession: boolean;
  /** The user, if it typed its address. */
  readonly email: string | null;
  readonly remedies: Remedies;
}

async function obtainToken(input: Input, reached: ServiceAddress): Promise<LoginToken> {
  const tokenFile = input.text('token-file');
  if (tokenFile !== undefined) {
    const surplus = ['email', 'password-file'].find((flag) => input.has(flag));
    if (surplus !== undefined) {
      throw new WrongUsage(`--${surplus} and --token-file exclude each other; give a password or a token`);
    }
    const value = await readToken(`file:${tokenFile}`, 'the personal token');
    const remedies = { 401: `give --token-file a token that "cpn token create" made, not the one in ${tokenFile}` };
    return { value, expiresAt: null, isSession: false, email: null, remedies };
  }
  return openSession(input, reached);
}

/** Opens a session of a person. The caller has confirmed the program that listens there. */
export async function openSession(input: Input, reached: ServiceAddress): Promise<LoginToken> {
  if (choosesPage(input)) {
    const session = await logInOnPage(input, reached);
    if (session !== null)
      return { value: session.token, expiresAt: session.expiresAt, isSession: true, email: null, remedies: {} };
  }
  const email = input.text('email') ?? (await askEmail());
  const password = await obtainPassword(input);
  const service = await connectAdmin(reached, null);
  const { token, expiresAt } = await service.login(email, password, `cpn on ${hostname()}`);
  return { value: token, expiresAt, isSession: true, email, remedies: {} };
}

/** True without an e-mail address or password, on a terminal or if the flag chooses the console. */
function choosesPage(input: Input): boolean {
  if (input.has('email') || input.has('password-file')) return false;
  return hasTerminal() || input.has('browser');
}

async function askAddress(): Promise<string | null> {
  return hasTerminal() ? ask('URL of the control plane') : null;
}

async function askEmail(): Promise<string> {
  if (!hasTerminal())
    throw new WrongUsage('--email is missing; or use --token-file, or --no-browser to log in with a code');
  return ask('E-mail address');
}

async function ask(message: string): Promise<string> {
  const answer = await prompt('text', { message });
  if (answer === null || answer.trim() === '') throw new WrongUsage(`no ${message} was given`);
  return answer.trim();
}
