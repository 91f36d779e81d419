import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PeerService } from '../api/service.ts';
import type { DoctorTools } from '../app/doctor/examination.ts';
import { EvaluationCache } from '../app/evaluation-cache.ts';
import { type ConnectOptions, type KnownService, type Log, noMeter, type Tools } from '../app/tools.ts';
import type { LockHolder } from '../core/doctor/check-files.ts';
import { expectCpnError } from '../core/errors/index.ts';
import type { TcpConnection } from '../core/host-state/actual.ts';
import { findEnvironmentProxy } from '../core/net/proxy.ts';
import type { ServiceAddress } from '../core/net/service-address.ts';
import type { DaemonUnit, Supervisor } from '../host/supervisor.ts';
import type { Joined } from '../store/state/state.ts';
import type { Folders, HostStore } from '../store/store.ts';
import type { TextFile } from './daemon/metrics/publish.ts';
import { deferSignals } from './daemon/stop-signals.ts';
import type { Environment, Input } from './input/input.ts';
import { printRemark, progress, warn } from './output/output.ts';

/** A command prints messages. A daemon logs, and continues if its disk fails. */
type Mode = 'command' | 'daemon';

/** Creates the tools of the use cases. Only this file constructs their adapters. */
export async function openTools(input: Input, mode: Mode = 'command'): Promise<Tools> {
  const { chooseDriver, untestedWarning: describeUntested, openHost } = await import('../host/open-host.ts');
  const { SavedConfigs } = await import('../app/saved-configs.ts');
  const driver = chooseDriver(input.environment.CPN_HOST_DRIVER);
  const folders = await foldersOf(input.environment);
  const log = await openLog(input, mode === 'daemon' ? 'info' : 'silent');
  const reporter = mode === 'daemon' ? reportToLog(log) : { progress, remark: printRemark, warn };
  const reportUnusedProxy = createProxyReport(input.environment, reporter);
  // If two daemons share an identity, an old id returns, which no restart causes.
  const instance = mode === 'daemon' ? Buffer.from(random(8)).toString('hex') : null;
  const untested = describeUntested(driver);
  if (untested !== null) reporter.warn(untested);
  return {
    host: await openHost(driver, folders.runtime),
    store: await openStore(folders, mode, reporter, log),
    evaluations: new EvaluationCache(),
    savedConfigs: new SavedConfigs(),
    connect(known, patience) {
      reportUnusedProxy(known.service);
      const isLinux = driver === 'linux';
      return connectService(known, { deadlineMs: 30_000, ...patience }, reporter, {
        ...{ instance, enforcesRules: isLinux, takesPaths: isLinux },
      });
    },
    async describe(address, etag, signal) {
      const { readDescription } = await import('../api/description.ts');
      return readDescription(address, etag, signal && { signal });
    },
    findListeningUser,
    log,
    now: () => new Date(),
    uptime,
    monotonic: () => performance.now() / 1000,
    sleep: (milliseconds, signal) => sleep(milliseconds, undefined, signal && { signal }).catch(() => {}),
    random,
    // The daemon passes its own signal to its work.
    deferSignals: mode === 'daemon' ? (work) => work(new AbortController().signal) : deferSignals,
    meter: noMeter,
    ...reporter,
  };
}

/** As {@link Tools.findListeningUser}. */
export async function findListeningUser(address: ServiceAddress, before?: number) {
  const { findListeningUser: find } = await import('../api/http/listener-check.ts');
  return find(address, before);
}

/** Without the command's environment variable, the daemon may reject the service's certificate. */
export async function warnOfTrust({ interface: link, service }: Joined, { environment }: Input): Promise<void> {
  const { findTrustVariable } = await import('../api/http/environment-trust.ts');
  const variable = await findTrustVariable(service, environment);
  if (variable === null) return;
  const { name, path } = variable;
  const file = name === 'SSL_CERT_DIR' ? 'FILE' : path;
  const found = `this command trusts the certificate of ${service.url} because of ${name}, a variable that cpn.service does not receive`;
  warn(`${found}; save the CA for both: cpn set ${link} --ca-file ${file}`);
}

/** The TCP connections of this machine. Empty where the platform does not list them. */
export async function readTcpConnections({ environment }: Input): Promise<readonly TcpConnection[]> {
  const { chooseDriver, openHost } = await import('../host/open-host.ts');
  const { runtime } = await foldersOf(environment);
  const host = await openHost(chooseDriver(environment.CPN_HOST_DRIVER), runtime);
  return host.tcpConnections?.() ?? [];
}

/** Opens a page in the user's browser. False if no program could. */
export async function openPage(url: URL): Promise<boolean> {
  const { openPage: open } = await import('../host/process/run.ts');
  return open(url);
}

/** Runs a program of the user on this terminal to its end. @throws CommandFailed */
export async function runOnTerminal(program: string, args: readonly string[]): Promise<void> {
  const { runOnTerminal: run } = await import('../host/process/run.ts');
  return run(program, args);
}

export async function openDoctor(input: Input): Promise<DoctorTools> {
  const [tools, { chooseDriver, openInspector }, { probeService }] = await Promise.all([
    openTools(input),
    import('../host/open-host.ts'),
    import('../api/http/is-service-reachable.ts'),
  ]);
  const folders = await foldersOf(input.environment);
  const inspector = await openInspector(chooseDriver(input.environment.CPN_HOST_DRIVER), folders.runtime);
  const { environment } = input;
  return {
    ...tools,
    ...{ inspector, folders },
    probeService,
    environmentProxy: ({ url }) => findEnvironmentProxy(url, environment),
  };
}

/** The interfaces of this host's networks, by file name. */
export async function listInterfaces(environment: Environment): Promise<string[]> {
  const { state } = await foldersOf(environment);
  const { listLinks } = await import('../store/files/folder.ts');
  return listLinks(state);
}

/** The daemon's process, running or killed, or null. A stopped daemon removes its pid file. */
export async function readDaemon(input: Input): Promise<LockHolder | null> {
  const { runtime } = await foldersOf(input.environment);
  const [, digits] = /^(\d{1,10})\s*$/.exec(readOrEmpty(join(runtime, 'daemon.pid'))) ?? [];
  return digits === undefined ? null : { pid: Number(digits), alive: isAlive(Number(digits)) };
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/** A world-readable file, replaced atomically. Not fsynced, because it can be written again. */
export async function openTextFile(path: string): Promise<TextFile> {
  const { removeFile, replaceFile } = await import('../store/files/atomic-file.ts');
  return {
    write: (text) => replaceFile(path, text, { durable: false, mode: 0o644 }),
    remove: () => removeFile(path),
  };
}

/** The service manager that started this process, or null. */
export async function openSupervisor(input: Input, log: Pick<Log, 'warn'>): Promise<Supervisor | null> {
  if (input.environment.NOTIFY_SOCKET === undefined) return null;
  const { systemdSupervisor } = await import('../host/systemd/notify.ts');
  const onTrouble = (error: Error) => log.warn({ error: error.message }, 'cannot report to the service manager');
  return systemdSupervisor(input.environment, onTrouble);
}

/** Null without a unit, and for a host whose files are elsewhere, which no unit manages. */
export async function openUnit({ environment }: Input): Promise<DaemonUnit | null> {
  if (folderVariables.some((name) => environment[name] !== undefined)) return null;
  const { findUnit } = await import('../host/systemd/unit.ts');
  return findUnit();
}

interface ProgressReporter extends Pick<Tools, 'progress' | 'warn'> {
  /** Reports an event within a step. */
  remark(text: string): void;
}

/** Loads no logger for a silent log: loading takes a tenth of the time of `cpn status`. */
async function openLog(input: Input, byDefault: 'info' | 'silent'): Promise<Log> {
  if ((input.environment.CPN_LOG_LEVEL ?? byDefault) !== 'silent') {
    const { openLog: open } = await import('./output/log.ts');
    return open(input, byDefault);
  }
  const drop = () => {};
  return { debug: drop, info: drop, warn: drop, error: drop };
}

function reportToLog(log: Log): ProgressReporter {
  const logStep = (step: string) => log.debug({ step }, 'step');
  return {
    progress: logStep,
    remark: logStep,
    warn: (text) => log.warn({ text }, 'warning'),
  };
}

async function openStore(folders: Folders, mode: Mode, { warn }: ProgressReporter, log: Log): Promise<HostStore> {
  const { fileStore } = await import('../store/file-store.ts');
  const onDamage = (path: string) =>
    warn(`${path} is damaged; using its previous copy; the next pass moves the damaged file aside`);
  const store = fileStore(folders, onDamage, warn);
  if (mode === 'command') return store;
  const { fallbackStore } = await import('../store/fallback-store.ts');
  return fallbackStore(store, (event, error) => {
    if (event === 'recovered') log.info({}, 'the disk works again');
    else log.warn({ error: error?.message }, 'the disk failed; continuing from memory');
  });
}

/**
 * Warns, once per service, of an unsaved proxy in the environment. A joined network uses only the
 * saved proxy, which guard, `status` and daemon share; their environments differ.
 */
function createProxyReport(environment: Environment, { warn }: ProgressReporter): (service: ServiceAddress) => void {
  const reported = new Set<string>();
  return ({ url, proxy }) => {
    if (proxy !== undefined || reported.has(url)) return;
    reported.add(url);
    const named = readNamedProxy(url, environment);
    if (named === null) return;
    const found = `${named.from} names a proxy that is not saved; connecting to ${url} directly`;
    warn(`${found}; "cpn set --proxy ${named.url}" saves it, and "cpn set --proxy none" ends this warning`);
  };
}

/** Also null if the variable has no valid proxy, because it is not used. */
function readNamedProxy(url: string, environment: Environment) {
  try {
    return findEnvironmentProxy(url, environment);
  } catch (error) {
    expectCpnError(error);
    return null;
  }
}

async function connectService(
  { service, features, resolved = {}, deletion }: KnownService,
  patience: ConnectOptions,
  { remark }: ProgressReporter,
  client: { readonly instance: string | null; readonly enforcesRules: boolean; readonly takesPaths: boolean },
): Promise<PeerService> {
  const { connectPeerService } = await import('../api/peer-service.ts');
  return connectPeerService(service, features ?? [], {
    ...patience,
    ...{ ...client, resolved, isDeleted: deletion !== undefined },
    onRetry: ({ problem, delayMs }) => remark(`${problem}; retrying in ${delayMs} ms`),
  });
}

const folderVariables = ['CPN_CONFIG_DIR', 'CPN_STATE_DIR', 'CPN_RUNTIME_DIR'];

async function foldersOf(environment: Environment): Promise<Folders> {
  const { defaultFolders: findUsualFolders } = await import('../host/open-host.ts');
  const usual = findUsualFolders();
  return {
    config: environment.CPN_CONFIG_DIR ?? usual.config,
    state: environment.CPN_STATE_DIR ?? usual.state,
    runtime: environment.CPN_RUNTIME_DIR ?? usual.runtime,
  };
}

/** Web Crypto loads less code than Node's own module. */
function random(bytes: number): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(bytes));
}
