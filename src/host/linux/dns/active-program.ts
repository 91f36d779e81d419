import { statSync } from 'node:fs';
import { uptime } from 'node:os';
import { hrtime } from 'node:process';
import { CpnError } from '../../../core/errors/index.ts';
import type { LinuxProgram } from '../../../core/host-state/actual.ts';
import type { Run } from '../../process/run.ts';
import { readIfThere } from '../underlay.ts';

/** In the order of preference. NetworkManager counts only if it runs a dnsmasq. */
const programs: readonly LinuxProgram[] = ['NetworkManager', 'dnsmasq', 'unbound'];

const networkManagerPid = '/run/NetworkManager/dnsmasq.pid';

/** Milliseconds. dnsmasq writes this file after it read its settings. */
const pidFileDelay = 500;

/** A program whose unit is active. */
export interface ActiveProgram {
  readonly program: LinuxProgram;
  /** When it started, in milliseconds of the present clock: not later than it read its settings. */
  readonly startedAt: number;
  /** The files of the administrator that its unit consists of, or reads. */
  readonly files: readonly string[];
}

/**
 * Finds the program whose unit may be the resolver of this host; null without one. The sandbox of
 * the daemon hides the processes of other users, and a process may state any command line.
 */
export async function findActiveProgram(run: Run, read = readIfThere): Promise<ActiveProgram | null> {
  const active = await listActive(run, programs, read);
  return programs.flatMap((each) => active.get(each) ?? [])[0] ?? null;
}

/** Null if the program does not run. If it runs, it may not be the resolver. */
export async function findActive(run: Run, program: LinuxProgram): Promise<ActiveProgram | null> {
  return (await listActive(run, [program], readIfThere)).get(program) ?? null;
}

const properties = [
  ...['Id', 'ActiveState', 'InactiveExitTimestamp', 'InactiveExitTimestampMonotonic'],
  ...['FragmentPath', 'DropInPaths', 'EnvironmentFiles'],
].map((each) => `--property=${each}`);

async function listActive(
  run: Run,
  wanted: readonly LinuxProgram[],
  read: (path: string) => string,
): Promise<ReadonlyMap<LinuxProgram, ActiveProgram>> {
  const units = wanted.map((program) => `${program}.service`);
  const text = await run('systemctl', ['show', ...properties, ...units]).catch((error) => {
    if (error instanceof CpnError) return '';
    throw error;
  });
  const running = text
    .split('\n\n')
    .filter((block) => /^ActiveState=(active|activating|reloading)$/m.test(block))
    .map((block) => describeUnit(block, propertyOf(block, 'Id').replace(/\.service$/, '') as LinuxProgram));
  const hasDnsmasq = () => read(networkManagerPid) !== '';
  return new Map(
    running
      .filter(({ program }) => wanted.includes(program) && (program !== 'NetworkManager' || hasDnsmasq()))
      .map((each) => [each.program, each]),
  );
}

function describeUnit(block: string, program: LinuxProgram): ActiveProgram {
  const unitAt = findStart(block);
  // Its dnsmasq starts later than NetworkManager itself, and often.
  if (program === 'NetworkManager') return { program, startedAt: Math.max(unitAt, timeOfPidFile()), files: [] };
  const environment = [...block.matchAll(/^EnvironmentFiles=(\S+) \(/gm)].map(([, path = '']) => path);
  const files = [propertyOf(block, 'FragmentPath'), ...propertyOf(block, 'DropInPaths').split(' '), ...environment];
  // An update of systemd replaces files of units in /usr.
  const ofAdministrator = files.filter((path) => path.startsWith('/etc/'));
  return { program, startedAt: unitAt, files: [`/etc/default/${program}`, ...ofAdministrator] };
}

function propertyOf(block: string, name: string): string {
  return new RegExp(`^${name}=(.*)$`, 'm').exec(block)?.[1] ?? '';
}

/**
 * The start of a unit in the present clock, which may have been wrong at that time. Without a time,
 * the boot. The monotonic clock stands still while the host is suspended: within that time, the
 * clock of the start decides.
 */
function findStart(block: string): number {
  const monotonic = Number(hrtime.bigint() / 1_000_000n);
  const latest = Date.now() - monotonic + Number(propertyOf(block, 'InactiveExitTimestampMonotonic')) / 1_000;
  const suspended = uptime() * 1_000 - monotonic;
  // Two clocks that were read one after the other.
  if (suspended < 1_000) return latest;
  const [date = ''] = /\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/.exec(propertyOf(block, 'InactiveExitTimestamp')) ?? [];
  // In the local time zone.
  const stated = Date.parse(date) || 0;
  return Math.min(latest, Math.max(latest - suspended, stated));
}

function timeOfPidFile(): number {
  const time = statSync(networkManagerPid, { throwIfNoEntry: false })?.ctimeMs ?? 0;
  // A time that was wrong.
  return time > Date.now() ? 0 : time - pidFileDelay;
}

/**
 * The options of the dnsmasq that runs, as systemd shows its process; null if there is none.
 * Settings such as those of Debian are a script.
 */
export async function readDnsmasqArgs(run: Run): Promise<string[] | null> {
  // Exits with 3 for a unit that starts.
  const options = { allowExitCodes: [3] };
  const text = await run(
    'systemctl',
    ['status', '--full', '--no-pager', '--lines=0', 'dnsmasq.service'],
    options,
  ).catch((error) => {
    if (error instanceof CpnError) return '';
    throw error;
  });
  const [shown, args = ''] = /^[^\w\n]*\d+ (?:\S*\/)?dnsmasq(?: (.*))?$/m.exec(text) ?? [];
  return shown === undefined ? null : splitWords(args);
}

/** systemd quotes a word with a space or another special character. */
function splitWords(text: string): string[] {
  return [...text.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)].map(
    ([, quoted, word = '']) => quoted?.replace(/\\(.)/g, '$1') ?? word,
  );
}
