import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { uptime } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PeerService } from '../api/service.ts';
import type { DoctorTools } from '../app/doctor/examination.ts';
import { noMeter } from '../app/meter.ts';
import type { KnownService, Log, Patience, Tools } from '../app/tools.ts';
import type { Holder } from '../core/doctor/judge-files.ts';
import type { DaemonUnit, Supervisor } from '../host/supervisor.ts';
import type { Folders, Store } from '../store/store.ts';
import type { Input } from './input.ts';
import type { TextFile } from './metrics/tell.ts';
import { progress, remark, warn } from './output.ts';
import { deferSignals } from './stop-signals.ts';

/** A command speaks to a person; a daemon writes a log, and goes on without its disk. */
type Manner = 'command' | 'daemon';

/** Makes everything a use case of this host works with. The only place that constructs adapters for them. */
export async function openTools(input: Input, manner: Manner = 'command'): Promise<Tools> {
  const [{ chooseDriver, describeUntested, openHost }, { openLog }] = await Promise.all([
    import('../host/open-host.ts'),
    import('./log.ts'),
  ]);
  const driver = chooseDriver(input.environment.CPN_HOST_DRIVER);
  const folders = await foldersOf(input);
  const log = openLog(input, manner === 'daemon' ? 'info' : 'silent');
  const voice = manner === 'daemon' ? logVoice(log) : { progress, remark, warn };
  const untested = describeUntested(driver);
  if (untested !== null) voice.warn(untested);
  return {
    host: await openHost(driver, folders.runtime),
    store: await openStore(folders, manner, voice, log),
    connect: (known, patience) => connectService(known, { deadlineMs: 30_000, ...patience }, voice),
    async describe(address, etag, signal) {
      const { readDescription } = await import('../api/description.ts');
      return readDescription(address, etag, signal && { signal });
    },
    log,
    now: () => new Date(),
    uptime,
    monotonic: () => performance.now() / 1000,
    sleep: (milliseconds, signal) => sleep(milliseconds, undefined, signal && { signal }).catch(() => {}),
    random: randomBytes,
    // A daemon hands its own signal to what it does.
    deferSignals: manner === 'daemon' ? (work) => work(new AbortController().signal) : deferSignals,
    meter: noMeter,
    ...voice,
  };
}

/** Makes what a check-up works with beside that. */
export async function openDoctor(input: Input): Promise<DoctorTools> {
  const [tools, { chooseDriver, openInspector }, { lookAtService }] = await Promise.all([
    openTools(input),
    import('../host/open-host.ts'),
    import('../api/look.ts'),
  ]);
  const folders = await foldersOf(input);
  const inspector = await openInspector(chooseDriver(input.environment.CPN_HOST_DRIVER), folders.runtime);
  return { ...tools, inspector, folders, look: lookAtService };
}

/** Who runs as the daemon of this host, or did until it was killed; null for nobody. One that is stopped takes its file with it. */
export async function readDaemon(input: Input): Promise<Holder | null> {
  const { runtime } = await foldersOf(input);
  const text = await readFile(join(runtime, 'daemon.pid'), 'utf8').catch(() => '');
  const [, digits] = /^(\d{1,10})\s*$/.exec(text) ?? [];
  return digits === undefined ? null : { pid: Number(digits), alive: isAlive(Number(digits)) };
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/** A file that everybody may read, replaced as a whole and as nobody's only copy. */
export async function openTextFile(path: string): Promise<TextFile> {
  const { removeFile, replaceFile } = await import('../store/atomic-file.ts');
  return {
    write: (text) => replaceFile(path, text, { durable: false, mode: 0o644 }),
    remove: () => removeFile(path),
  };
}

/** Whoever started this process and wants to know how it is; null for nobody, as in a person's shell. */
export async function openSupervisor(input: Input, log: Pick<Log, 'warn'>): Promise<Supervisor | null> {
  if (input.environment.NOTIFY_SOCKET === undefined) return null;
  const { systemdSupervisor } = await import('../host/systemd/notify.ts');
  const onTrouble = (error: Error) =>
    log.warn({ error: error.message }, 'the service manager cannot be told how it goes');
  return systemdSupervisor(input.environment, onTrouble);
}

/** The daemon as a unit of this host; null where there is none, and for a host whose files are elsewhere, which it knows nothing of. */
export async function openUnit({ environment }: Input): Promise<DaemonUnit | null> {
  if (folderVariables.some((name) => environment[name] !== undefined)) return null;
  const { findUnit } = await import('../host/systemd/unit.ts');
  return findUnit();
}

/** How a person, or the log, is told of what a use case does. */
interface Voice extends Pick<Tools, 'progress' | 'warn'> {
  /** Tells what happens within a step. */
  remark(text: string): void;
}

function logVoice(log: Log): Voice {
  const tell = (step: string) => log.debug({ step }, 'step');
  return {
    progress: tell,
    remark: tell,
    warn: (text) => log.warn({ text }, 'warning'),
  };
}

async function openStore(folders: Folders, manner: Manner, { warn }: Voice, log: Log): Promise<Store> {
  const { fileStore } = await import('../store/file-store.ts');
  const onDamage = (path: string) =>
    warn(`${path} is damaged; the previous copy of it is used, and the next pass sets it aside`);
  const store = fileStore(folders, onDamage, warn);
  if (manner === 'command') return store;
  const { rememberingStore } = await import('../store/remembering-store.ts');
  return rememberingStore(store, (event, error) => {
    if (event === 'recovered') log.info({}, 'the disk takes everything again');
    else log.warn({ error: error?.message }, 'the disk fails; going on from memory');
  });
}

async function connectService(
  { service, features }: KnownService,
  patience: Patience,
  { remark }: Voice,
): Promise<PeerService> {
  const { connectPeerService } = await import('../api/peer-service.ts');
  return connectPeerService(service, features ?? [], {
    ...patience,
    onRetry: ({ problem, delayMs }) => remark(`${problem}; trying again in ${delayMs} ms`),
  });
}

const folderVariables = ['CPN_CONFIG_DIR', 'CPN_STATE_DIR', 'CPN_RUNTIME_DIR'];

async function foldersOf({ environment }: Input): Promise<Folders> {
  const { findUsualFolders } = await import('../host/open-host.ts');
  const usual = findUsualFolders();
  return {
    config: environment.CPN_CONFIG_DIR ?? usual.config,
    state: environment.CPN_STATE_DIR ?? usual.state,
    runtime: environment.CPN_RUNTIME_DIR ?? usual.runtime,
  };
}
