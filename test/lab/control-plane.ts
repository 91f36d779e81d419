import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Host } from './host.ts';
import type { Lab } from './lab.ts';
import type { Outcome, Process } from './process.ts';

/** A control plane in the lab, and its administrator's shell. */
export interface ControlPlane {
  readonly host: Host;
  readonly url: string;
  readonly process: Process;
  /** Runs a command as the owner, who is logged in. */
  cpn(args: readonly string[]): Promise<Outcome>;
}

/** Starts the embedded control plane, with these flags too, on a host of its own on the wan, where its first owner is logged in. */
export async function startControlPlane(
  lab: Lab,
  address = '203.0.113.1',
  flags: readonly string[] = [],
): Promise<ControlPlane> {
  const host = await lab.addHost('control-plane', { address: `${address}/24` });
  const url = `http://${address}:8787`;
  begun ??= readBeginning();
  const before = await begun;
  if (before === undefined) begun = begin(host);
  else await writeBeginning(host, url, before);
  await begun;
  const process = await serveControlPlane(host, address, join(host.homeDir, 'password'), flags);
  return { host, url, process, cpn: (args) => host.cpn(args) };
}

/** The disk of a control plane whose first owner is logged in. */
interface Beginning {
  readonly url: string;
  readonly password: string;
  /** In base64. */
  readonly database: string;
  readonly login: string;
}

/** Made once in a run of tests: to hash the owner's password twice takes longer than all the rest of a start. */
let begun: Promise<Beginning | undefined> | undefined;

/** Where the processes of `scripts/test` share it: next to the report of the run, in a folder that goes with it. */
const { CPN_TEST_REPORT: report } = process.env;
const shared = report && join(dirname(report), 'beginning.json');

async function readBeginning(): Promise<Beginning | undefined> {
  const text = shared && (await readFile(shared, 'utf8').catch(() => undefined));
  return text ? JSON.parse(text) : undefined;
}

async function shareBeginning(beginning: Beginning): Promise<void> {
  if (!shared) return;
  const draft = `${shared}.${process.pid}`;
  await writeFile(draft, JSON.stringify(beginning), { mode: 0o600 });
  await rename(draft, shared);
}

/** Serves a new database for as long as its first owner takes to log in. */
async function begin(host: Host): Promise<Beginning> {
  const [url, passwordFile] = [`http://${host.address}:8787`, join(host.homeDir, 'password')];
  const password = randomBytes(18).toString('base64url');
  await writeFile(passwordFile, password, { mode: 0o600 });
  const server = await serveControlPlane(host, host.address, passwordFile, []);
  const named = ['--email', 'owner@example.net', '--password-file', passwordFile];
  await host.cpn(['login', '--api', url, '--insecure-http', ...named]);
  await server.stop();
  const [database, login] = [await readFile(databaseOf(host), 'base64'), await readFile(loginOf(host), 'utf8')];
  const beginning = { url, password, database, login };
  await shareBeginning(beginning);
  return beginning;
}

async function writeBeginning(host: Host, url: string, before: Beginning): Promise<void> {
  await writeFile(join(host.homeDir, 'password'), before.password, { mode: 0o600 });
  for (const file of [databaseOf(host), loginOf(host)]) await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await writeFile(databaseOf(host), before.database, { encoding: 'base64', mode: 0o600 });
  await writeFile(loginOf(host), before.login.replaceAll(before.url, url), { mode: 0o600 });
}

const databaseOf = (host: Host) => join(host.folder, 'data', 'control-plane.db');
const loginOf = (host: Host) => join(host.xdgConfigDir, 'cpn', 'login.json');

/** Makes an enrolment key as the owner. */
export async function makeKey(
  { cpn }: ControlPlane,
  network: string,
  name: string,
  ...more: string[]
): Promise<string> {
  return (await cpn(['key', 'create', network, '--name', name, ...more])).stdout.trim();
}

/** The output of `cpn join --json`. */
export interface Joined {
  readonly interface: string;
  readonly address: string;
  readonly network: { readonly id: number; readonly name: string };
  readonly peer: { readonly id: number; readonly name: string };
  readonly public_key: string;
  readonly handshake: boolean;
}

/** How a host joins. */
export interface Joining {
  readonly network: string;
  readonly flags?: readonly string[];
  /** Hosts that joined before: they make a pass, as daemons would, and so receive the new peer. */
  readonly before?: readonly Host[];
}

/** Joins a host to a network with a key of its own. Afterwards all of them are peers. */
export async function joinHost(controlPlane: ControlPlane, host: Host, joining: Joining): Promise<Joined> {
  const { network, flags = [], before = [] } = joining;
  if (keyFlags(flags).includes('connector')) await addMissingLans(controlPlane, host, network);
  const key = await makeKey(controlPlane, network, host.name, ...keyFlags(flags));
  const argv = ['join', '-', '--api', controlPlane.url, '--insecure-http', '--name', host.name, '--json', ...flags];
  let done = false;
  const joined = host.cpn(argv, { input: key }).finally(() => {
    done = true;
  });
  joined.catch(() => {});
  const pass = () => Promise.all(before.map((other) => other.cpn(['reconcile'])));
  while (!done && before.length > 0) await pass();
  const { stdout } = await joined;
  await pass();
  return JSON.parse(stdout);
}

/** Gives a host a path to each route of the network that it has none to: a connector without one puts the route out of service. */
export async function addMissingLans({ cpn }: ControlPlane, host: Host, network: string): Promise<void> {
  const { routes } = JSON.parse((await cpn(['network', 'show', network, '--json'])).stdout) as { routes: string[] };
  for (const route of routes.filter((each) => !each.includes(':') && each !== '0.0.0.0/0')) {
    const [first = ''] = route.split('/');
    const path = await host.exec(['ip', 'route', 'get', first], { allowFailure: true });
    if (path.exitCode !== 0) await addPath(host, route);
  }
}

/** Gives a host a path to the prefix, with nothing behind it. A LAN that is added later wins. */
export async function addPath(host: Host, prefix: string): Promise<void> {
  await host.exec(['ip', 'link', 'add', 'site0', 'type', 'bridge'], { allowFailure: true });
  await host.exec(['sh', '-c', 'echo 1 >/proc/sys/net/ipv6/conf/site0/disable_ipv6; exec ip link set site0 up']);
  await host.exec(['ip', 'route', 'add', prefix, 'dev', 'site0', 'metric', '40000']);
}

/** The type that a host joins as must be one that its key is for. */
export function keyFlags(joining: readonly string[]): string[] {
  const at = joining.indexOf('--type');
  return at < 0 ? [] : joining.slice(at, at + 2);
}

/** Serves the database of the control plane's host; again, once the process before has ended. */
export async function serveControlPlane(
  host: Host,
  address: string,
  passwordFile: string,
  flags: readonly string[],
): Promise<Process> {
  const data = join(host.folder, 'data');
  const owner = ['--owner-email', 'owner@example.net', '--owner-password-file', passwordFile];
  const process = await host.spawnCpn([
    'control-plane',
    'serve',
    '--listen',
    `${address}:8787`,
    '--data',
    data,
    ...owner,
    ...flags,
  ]);
  await process.waitForLine(/listening on/, 120_000);
  return process;
}
