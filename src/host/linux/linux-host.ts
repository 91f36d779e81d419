import { readFile } from 'node:fs/promises';
import type { Actual, Device } from '../../core/actual.ts';
import { CommandFailed, MissingTool } from '../../core/errors.ts';
import { unreadable, withoutTool } from '../../core/firewall.ts';
import { findForwardDrops } from '../../core/forward/find-drops.ts';
import { linksToward } from '../../core/forward/ways.ts';
import { parseLinkName } from '../../core/link-name.ts';
import { allForwardingKey, forwardingKey, isPlainLinkName } from '../../core/link-sysctl.ts';
import { findTool } from '../find-tool.ts';
import type { Host, Question } from '../host.ts';
import { readHosts } from '../hosts-file.ts';
import { KnownOutput } from '../known-output.ts';
import { answers, findSource, isPortFree, nudge, reaches, resolve } from '../network.ts';
import { type Run, run as runHere, type Start, saidBy, start as startHere } from '../run.ts';
import { watchDevices } from '../watch-devices.ts';
import { parseDump } from '../wg-dump.ts';
import { applyStep } from './apply-step.ts';
import { echoes, widen } from './echoes.ts';
import { watchEvents, watchFirewall } from './events.ts';
import { parseForwardTables, rulesetArgs } from './forward-chains.ts';
import { showArgs, showInput } from './ip-show.ts';
import { type LinkMemory, Memory } from './memory.ts';
import { listArgs, parseRules } from './nft.ts';
import { checkPrivilege } from './privilege.ts';
import { getRoute } from './route-get.ts';
import { readNeighbours } from './surroundings.ts';
import { findSuspects } from './suspects.ts';
import { areSysctlsSealed, readSysctls } from './sysctl.ts';

/** This Linux host, through `ip`, `wg`, `nft` and /proc. A `run` and a `start` of one's own see every process. */
export function linuxHost(run: Run = runHere, start: Start = startHere): Host {
  const memory = new Memory();
  return {
    check: async ({ firewall }) => {
      await checkPrivilege();
      await Promise.all([findTool('wg'), findTool('ip'), ...(firewall ? [findTool('nft')] : [])]);
    },
    observe: (question) => observe(run, question, memory),
    peers: async (link) => {
      const again = memory.of(parseLinkName(link)).dump;
      return parseDump(await run('wg', ['show', link, 'dump'], { again })).peers;
    },
    apply: (step) => applyStep(run, step),
    links: readLinkNames,
    resolve,
    route: (destination, source) => getRoute(run, destination, source ?? null),
    sourceAddress: findSource,
    isPortFree,
    nudge,
    answers,
    reaches: (target, deadlineMs) => reaches(run, target, deadlineMs),
    echoes: (address, request, deadlineMs) => echoes(run, address, request, deadlineMs),
    widen: (link, addresses, mtu) => widen(run, parseLinkName(link), addresses, mtu),
    watch: (listener) => watchEvents(listener, start),
    watchFirewall: (listener) => watchFirewall(listener, start),
    watchDevices: (listener, everyMs) => watchDevices(run, listener, everyMs, new KnownOutput()),
    forwardDrops: async (link, paths) => {
      const tables = parseForwardTables(await run('nft', rulesetArgs, { again: memory.ruleset }));
      return findForwardDrops(tables, parseLinkName(link), paths);
    },
    suspects: findSuspects,
  };
}

/** Reads everything anew, at once: two processes, and a third for the packet rules. */
async function observe(run: Run, question: Question, memory: Memory): Promise<Actual> {
  const { link, firewall, sysctls, served = [], hosts } = question;
  parseLinkName(link);
  const seen = memory.of(link);
  const [device, shown, marks, values, isSealed, neighbours, names] = await Promise.all([
    readDevice(run, link, seen),
    run('ip', showArgs, { input: showInput, again: memory.shown }).then(memory.readShown),
    firewall ? readFirewall(run, link, seen, firewall) : null,
    readSysctls(sysctls),
    areSysctlsSealed(),
    readNeighbours(process.env.SSH_CONNECTION),
    hosts ? readHosts(link) : null,
  ]);
  if (device === null) memory.forget(link);
  const around = seen.surround(shown, neighbours);
  const ways = served.flatMap((route) => linksToward(route, around)).filter(isPlainLinkName);
  const unread = [...new Set(ways.map(forwardingKey))].filter((key) => !(key in values));
  const all = unread.length === 0 ? values : { ...values, ...(await readSysctls(unread)) };
  return seen.describe({ device, shown, firewall: marks, sysctls: all, isSealed, neighbours, hosts: names });
}

/** ENODEV, and what a kernel says of a link that is no WireGuard interface: with the module, and without it. */
const noDevice = /No such device|Operation not supported|Protocol not supported/;

async function readDevice(run: Run, link: string, { dump: again, readDump }: LinkMemory): Promise<Device | null> {
  try {
    return readDump(await run('wg', ['show', link, 'dump'], { again }));
  } catch (error) {
    if (noDevice.test(saidBy(error))) return null;
    throw error;
  }
}

/** A failing `nft` does not stop the observation of the rest: its rules are loaded again, which shows whether it still fails. */
async function readFirewall(
  run: Run,
  link: string,
  { table: again }: LinkMemory,
  asked: Question['firewall'],
): Promise<string[] | null> {
  try {
    if (asked === 'where this host forwards' && !(await forwards())) return null;
    return parseRules(await run('nft', listArgs(link), { again }));
  } catch (error) {
    if (saidBy(error).includes('No such file or directory')) return null;
    if (error instanceof MissingTool) return asked === true ? null : [withoutTool];
    if (error instanceof CommandFailed) return [unreadable];
    throw error;
  }
}

async function forwards(): Promise<boolean> {
  return (await readSysctls([allForwardingKey]))[allForwardingKey] === '1';
}

/** From /proc/net/dev: /sys shows the network namespace in which it was mounted, which need not be ours. */
async function readLinkNames(): Promise<ReadonlySet<string>> {
  const lines = (await readFile('/proc/net/dev', 'utf8')).split('\n');
  return new Set(lines.flatMap((line) => /^\s*(\S+):/.exec(line)?.[1] ?? []));
}
