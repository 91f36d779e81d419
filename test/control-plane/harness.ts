import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { pino } from 'pino';
import { onTestFinished } from 'vitest';
import type { Role } from '../../src/contract/auth.ts';
import { usualPasswordCost } from '../../src/control-plane/domain/passwords.ts';
import { usualSessionLimits } from '../../src/control-plane/domain/session-limits.ts';
import { hashToken, mintSplitToken, mintToken, splitToken } from '../../src/control-plane/domain/tokens.ts';
import type { Limits } from '../../src/control-plane/http/limits.ts';
import { ChangeNotifier } from '../../src/control-plane/push/change-notifier.ts';
import { type ControlPlane, type ServeOptions, serve } from '../../src/control-plane/serve.ts';
import type { Context } from '../../src/control-plane/service/context.ts';
import { insertSession } from '../../src/control-plane/store/accounts/sessions.ts';
import { insertOrganization, insertUser } from '../../src/control-plane/store/accounts/users.ts';
import type { Db } from '../../src/control-plane/store/tables.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { memory } from '../lab/memory.ts';
import { copyTables, databaseFor, removeData, withDatabase } from './databases.ts';

export { withDatabase } from './databases.ts';

export const owner = { email: 'owner@example.net', password: 'correct horse battery staple' };

/** A control plane over a folder of its own, or a database that stands in for it, with a clock that only the test moves. */
export interface Plane {
  readonly url: string;
  readonly dataDir: string;
  readonly clock: {
    advance(ms: number): void;
    /** No time goes by. */
    setBack(ms: number): void;
    now(): Date;
    /** By the clock that is never set. */
    steadyNow(): number;
  };
  readonly log: () => string;
  readonly server: ControlPlane;
  /** Removes its data, unless they are elsewhere than where it would put them. */
  removeData(): Promise<void>;
  /** A session of a new user with this role; of another organization when it is named. */
  signIn(role: Role, organization?: number): Promise<string>;
  /** The headers of a browser with such a session: its cookie, and the key of its page. */
  signInBrowser(
    role: Role,
    organization?: number,
  ): Promise<{ readonly cookie: string; readonly 'session-key': string }>;
  addOrganization(name: string): Promise<number>;
  call(method: string, path: string, request?: CallOptions): Promise<Reply>;
}

export interface CallOptions {
  readonly token?: string | undefined;
  readonly body?: unknown;
  /** The body as it is, where it is not to be JSON. */
  readonly raw?: string;
  readonly headers?: Record<string, string>;
}

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look at bodies of every shape, right and wrong ones.
  readonly body: any;
}

export const hour = 3600 * 1000;

/** Cheap to hash, but long enough for other requests to come meanwhile. */
export const slowPasswords = { ...usualPasswordCost, p: 1 };

/** For a control plane that writes nothing by itself meanwhile. */
export const quiet = { flushMs: 1e9, tickMs: 1e9, settleMs: 1e9, gatherMs: 1e9, longestGatherMs: 1e9 };

/** A context as the control plane makes it, over another connection to its database. */
export function contextOver(db: Db, { clock }: Pick<Plane, 'clock'>, others: Partial<Context> = {}): Context {
  const unlimited = { take: () => () => {}, check: () => {}, hasRoom: () => true };
  return {
    ...{ db, now: clock.now, steadyNow: clock.steadyNow, readTime: async () => clock.now(), random: randomBytes },
    ...{ announce: async () => {}, webhookTypes: new Set(), onLoopback: false, enrollmentLimit: unlimited },
    ...{ singleSignOn: null, allowsPasswords: true },
    ...{ sessionLimits: usualSessionLimits, refusalLimit: unlimited, refusedConnectionLimit: unlimited },
    ...{ notifier: new ChangeNotifier(), healthNotifier: new ChangeNotifier(), ...others },
  } as unknown as Context;
}

/** Starts a control plane that ends with the test. */
export async function startPlane(options: Partial<ServeOptions> & { limits?: Partial<Limits> } = {}): Promise<Plane> {
  const plane = await openPlane(options);
  onTestFinished(() => closePlane(plane));
  return plane;
}

/** A session of the first owner, by a login: nothing writes to the database but the control plane. */
export async function logIn(plane: Plane): Promise<string> {
  return (await plane.call('POST', '/api/auth/login', { body: owner })).body.data.access_token;
}

/** Starts a control plane that the caller closes; its data goes with it, unless the caller says where they are. */
export async function openPlane(options: Partial<ServeOptions> = {}): Promise<Plane> {
  const isOwn = options.dataDir === undefined;
  const dataDir = options.dataDir ?? makeTemporaryFolder();
  if (isOwn && options.database === undefined) await copyTables(dataDir);
  const lines: string[] = [];
  const sink = new Writable({
    write: (chunk, _encoding, done) => {
      lines.push(String(chunk));
      done();
    },
  });
  let at = new Date('2030-01-01T00:00:00.000Z');
  let steady = at.getTime();
  const serving = serve({
    host: '127.0.0.1',
    port: 0,
    dataDir,
    database: options.database ?? (await databaseFor(dataDir)),
    owner: { email: owner.email, password: new Secret(owner.password) },
    allowPublicRoutes: false,
    logger: pino({ level: 'trace' }, sink),
    now: () => at,
    ...(options.now === undefined && { steadyNow: () => steady }),
    passwordCost: { N: 16, r: 1, p: 1 },
    // Tests write to the database by themselves, and SQLite lets one connection of a process write at a time.
    chainMs: 2 ** 31 - 1,
    // One test after another fails on purpose, all from one address.
    limits: { failedLogins: 1000, failedEnrollments: 1000, userChanges: 100_000 },
    ...options,
  });
  if (isOwn) await serving.catch(() => removeData(dataDir));
  const server = await serving;
  const clock = {
    now: () => at,
    advance: (ms: number) => {
      at = new Date(at.getTime() + ms);
      steady += ms;
    },
    steadyNow: () => steady,
    setBack: (ms: number) => {
      at = new Date(at.getTime() - ms);
    },
  };
  const addOrganization = (name: string) => withDatabase(dataDir, (db) => insertOrganization(db, name));
  return {
    url: server.url,
    dataDir,
    clock,
    log: () => lines.join(''),
    server,
    removeData: isOwn ? () => removeData(dataDir) : async () => {},
    addOrganization,
    signIn: async (role, organization = 1) => {
      const token = mintToken('cpu_', randomBytes);
      await addSession(dataDir, role, organization, clock.now(), token);
      return token.reveal();
    },
    signInBrowser: async (role, organization = 1) => {
      const token = mintSplitToken(randomBytes);
      await addSession(dataDir, role, organization, clock.now(), token);
      const { cookie, key } = splitToken(token);
      return { cookie: `cpn_session=${cookie.reveal()}`, 'session-key': key.reveal() };
    },
    call: (method, path, request) => call(server.url, method, path, request),
  };
}

export async function closePlane({ server, removeData }: Plane): Promise<void> {
  await server.close().finally(removeData);
}

/** A folder that is gone with the test, as is the database that stands in for it. */
export function makeFolder(): string {
  const folder = makeTemporaryFolder();
  onTestFinished(() => removeData(folder));
  return folder;
}

/** A console without content, in a folder that the caller removes. */
export function makeConsole(): string {
  const folder = makeTemporaryFolder();
  mkdirSync(join(folder, 'assets'));
  for (const name of ['index.html', 'index.html.gz']) writeFileSync(join(folder, name), '');
  return folder;
}

function makeTemporaryFolder(): string {
  return mkdtempSync(join(memory, 'cpn-control-plane-'));
}

export async function call(url: string, method: string, path: string, options: CallOptions = {}): Promise<Reply> {
  const { token, body, raw = body === undefined ? undefined : JSON.stringify(body), headers = {} } = options;
  const response = await fetch(url + path, {
    method,
    headers: {
      accept: 'application/json',
      ...(raw !== undefined && { 'content-type': 'application/json' }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...headers,
    },
    ...(raw !== undefined && { body: raw }),
  });
  const text = await response.text();
  const isJson = /json/.test(response.headers.get('content-type') ?? '');
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text || undefined };
}

/** Any 32 bytes are a public key. */
export function publicKey(): string {
  return randomBytes(32).toString('base64');
}

/** Makes a network and gives its id. */
export async function makeNetwork(plane: Pick<Plane, 'call'>, token: string, fields: object = {}): Promise<number> {
  const body = { name: 'office', private_cidr: '10.77.0.0/24', ...fields };
  const reply = await plane.call('POST', '/api/networks', { token, body });
  if (reply.status !== 201) throw new Error(`no network: ${JSON.stringify(reply.body)}`);
  return reply.body.data.id;
}

/** Makes an enrolment key and gives its token. */
export async function makeKey(
  plane: Pick<Plane, 'call'>,
  token: string,
  network: number,
  fields: object = {},
): Promise<string> {
  const path = `/api/networks/${network}/enrollment-keys`;
  const reply = await plane.call('POST', path, { token, body: { name: 'rack', max_uses: 10, ...fields } });
  if (reply.status !== 201) throw new Error(`no key: ${JSON.stringify(reply.body)}`);
  return reply.body.data.enrollment_token;
}

/** Enrols a host with a key pair of its own, or with what the fields say. */
export function enroll(plane: Pick<Plane, 'call'>, key: string, fields: object = {}, idempotencyKey?: string) {
  return plane.call('POST', '/api/networks/enroll', {
    body: { enrollment_token: key, name: 'edge', peer_type: 'origin', public_key: publicKey(), ...fields },
    headers: idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey },
  });
}

async function addSession(dataDir: string, role: Role, organization: number, now: Date, token: Secret): Promise<void> {
  await withDatabase(dataDir, async (db) => {
    const created_at = now.toISOString();
    const email = `${role}-${randomBytes(4).toString('hex')}@example.net`;
    const user = { organization_id: organization, email, password_hash: 'none', role, created_at };
    await insertSession(db, {
      user_id: await insertUser(db, user),
      name: 'test',
      token_hash: hashToken(token),
      created_at,
      expires_at: new Date(now.getTime() + 24 * hour).toISOString(),
    });
  });
}
