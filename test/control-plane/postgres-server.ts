import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import pg from 'pg';
import { memory } from '../lab/memory.ts';

/** Where a server is; what a test needs to connect to it. */
export interface PostgresAddress {
  /** The folder of its Unix socket, through which no user needs a password. */
  readonly socket: string;
  /** On 127.0.0.1, with the password. */
  readonly port: number;
  readonly user: string;
  readonly password: string;
}

/** A PostgreSQL of this machine's packages, with a data folder of its own. */
export interface PostgresServer extends PostgresAddress {
  /** Kills it with all its connections, as a power cut would. */
  crash(): Promise<void>;
  /** Starts it again over the same data. */
  restart(): Promise<void>;
  /** Stops it and removes its data. */
  remove(): Promise<void>;
}

/** PostgreSQL refuses to run as root, so root runs it as the unprivileged user with the id 65534. */
const unprivileged = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};

/** What a server is started with. */
interface PostgresOptions {
  /** Each is written `name=value`. */
  readonly settings?: readonly string[];
  /** Files next to its data folder, which it alone may read, by name. */
  readonly files?: Readonly<Record<string, string>>;
}

/** Starts a server that the caller removes. */
export async function startPostgres({ settings = [], files = {} }: PostgresOptions = {}): Promise<PostgresServer> {
  const bin = findPrograms();
  const folder = mkdtempSync(join(memory, 'cpn-postgres-'));
  const data = join(folder, 'data');
  const address = {
    socket: folder,
    port: await findFreePort(),
    user: 'cpn',
    password: randomBytes(12).toString('hex'),
  };
  const passwordFile = join(folder, 'password');
  for (const [name, text] of Object.entries({ ...files, password: address.password })) {
    writeFileSync(join(folder, name), text, { mode: 0o600 });
    chownSync(join(folder, name), unprivileged.uid ?? -1, unprivileged.gid ?? -1);
  }
  chownSync(folder, unprivileged.uid ?? -1, unprivileged.gid ?? -1);
  const manner = [
    '--auth-local=trust',
    '--auth-host=scram-sha-256',
    '--encoding=UTF8',
    '--locale=C.UTF-8',
    '--no-sync',
  ];
  run(join(bin, 'initdb'), ['-D', data, '-U', address.user, `--pwfile=${passwordFile}`, ...manner]);
  const options = [
    `port=${address.port}`,
    'listen_addresses=127.0.0.1',
    `unix_socket_directories=${folder}`,
    ...settings,
  ];
  const start = () => startProcess(join(bin, 'postgres'), ['-D', data, ...options.flatMap((each) => ['-c', each])]);
  let running = await start();
  return {
    ...address,
    crash: () => end(running, 'SIGKILL'),
    restart: async () => {
      running = await start();
    },
    remove: async () => {
      // Fast shutdown: open connections are closed.
      await end(running, 'SIGINT');
      rmSync(folder, { recursive: true });
    },
  };
}

/** The URL of a database, by the socket. */
export function urlOf({ socket, port, user }: PostgresAddress, database: string): string {
  return `postgres:///${database}?${new URLSearchParams({ host: socket, port: String(port), user })}`;
}

/** Works as the superuser of the server. */
export async function asSuperuser<Result>(
  { socket, port, user }: PostgresAddress,
  work: (client: pg.Client) => Promise<Result>,
  database = 'postgres',
): Promise<Result> {
  const client = new pg.Client({ host: socket, port, user, database });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Debian keeps the server's programs away from PATH, in a folder for each version. */
export function findPrograms(): string {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [
    ...versions.map((version) => join(debian, version, 'bin')),
    ...(process.env.PATH ?? '').split(delimiter),
  ];
  const found = folders.find((folder) => existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'postgres')));
  if (found === undefined)
    throw new Error('these tests need a PostgreSQL server, and there is none: run scripts/setup');
  return found;
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

function run(program: string, argv: readonly string[]): void {
  const { status, stderr, error } = spawnSync(program, argv, { ...unprivileged, cwd: '/', encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program} failed: ${error?.message ?? stderr}`);
}

async function startProcess(program: string, argv: readonly string[]): Promise<ChildProcess> {
  const child = spawn(program, argv, { ...unprivileged, cwd: '/', stdio: ['ignore', 'ignore', 'pipe'] });
  const said: string[] = [];
  await new Promise<void>((resolve, reject) => {
    createInterface(child.stderr).on('line', (line) => {
      said.push(line);
      if (line.includes('database system is ready to accept connections')) resolve();
    });
    child.once('error', reject);
    child.once('exit', () => reject(new Error(`PostgreSQL did not start:\n${said.join('\n')}`)));
  });
  return child;
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill(signal);
  await ended;
}
