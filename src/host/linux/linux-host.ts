import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { CommandFailed, CpnError, MapsUnsupported, MissingTool } from '../../core/errors/index.ts';
import { linkFinder } from '../../core/forward/links-toward.ts';
import { unreadable, withoutTool } from '../../core/forward/own-table.ts';
import type { Actual, Device } from '../../core/host-state/actual.ts';
import { forwardingKey } from '../../core/host-state/sysctl-keys.ts';
import { findServingAddress } from '../../core/names/usable-resolver.ts';
import { namesPort } from '../../core/names/zone.ts';
import { isDefaultRoute } from '../../core/net/cidr.ts';
import { isLoopback } from '../../core/net/endpoint.ts';
import { isPlainLinkName, parseLinkName } from '../../core/net/link-name.ts';
import type { Host, HostEvent, ObserveOptions } from '../host.ts';
import { readHosts } from '../hosts-file.ts';
import {
  answersQuery,
  findSourceAddress,
  isPortFree,
  isTcpReachable,
  probe,
  probeConnector,
  resolve,
  triggerHandshake,
} from '../probes.ts';
import { isTooLong, parseOutput, stderrOf } from '../process/command-error.ts';
import { findTool } from '../process/find-tool.ts';
import { OutputCache } from '../process/output-cache.ts';
import { type Run, run as runHere, type Start, start as startHere } from '../process/run.ts';
import { findForeignSocket } from '../wireguard/userspace.ts';
import { watchDevices } from '../wireguard/watch-devices.ts';
import { applyStep } from './apply-step.ts';
import { findConflictingProcesses } from './conflicting-processes.ts';
import { findFileResolver } from './dns/file-resolver.ts';
import { readResolverSettings, withoutOwn } from './dns/resolved.ts';
import { isListening, readResolvers } from './dns/resolvers.ts';
import { resolverFolder, watchResolver } from './dns/watch-resolver.ts';
import { probeSize, raiseProbeMtu } from './echoes.ts';
import { readForwarded, renderForwarded } from './ip/forwarded-routes.ts';
import { listRoutes, readLarge } from './ip/large-tables.ts';
import { readPaths, renderPaths } from './ip/own-paths.ts';
import { getRoute } from './ip/route-get.ts';
import { type LookupResult, runBatch } from './ip/route-lookups.ts';
import { showInput } from './ip/show.ts';
import { watchEvents, watchFirewall } from './monitor/events.ts';
import { readPortStates } from './nft/firewall-programs.ts';
import { readForeignDrops } from './nft/foreign-rules.ts';
import { listArgs, mapSample, parseRules, parseTimeouts } from './nft/own-table.ts';
import { readRefused } from './nft/refused.ts';
import { type LinkCache, type LinkView, ObservationCache } from './observation-cache.ts';
import { checkPrivilege } from './process-files.ts';
import { countSent, readRecentDestinations } from './sent-packets.ts';
import { parseConnections } from './socket-table.ts';
import { readSshClients } from './ssh-clients.ts';
import { areSysctlsSealed, readSysctls } from './sysctl.ts';
import { readIfThere } from './underlay.ts';

/** This Linux host, accessed through `ip`, `wg`, `nft` and /proc. */
export function linuxHost(run: Run = runHere, start: Start = startHere): Required<Host> {
  const caches = new ObservationCache();
  return {
    check: async ({ firewall, maps = false }) => {
      await checkPrivilege();
      await Promise.all([findTool('wg'), findTool('ip'), ...(firewall || maps ? [findTool('nft')] : [])]);
      if (maps) await checkMaps(run);
    },
    observe: (options) => observe(run, options, caches),
    sshClients: () => readSshClients(process.env.SSH_CONNECTION),
    tcpConnections: () => parseConnections(['/proc/net/tcp', '/proc/net/tcp6'].map(readIfThere).join('\n')),
    device: (link) => observeDevice(run, parseLinkName(link), caches),
    apply: (step) => applyStep(run, step).finally(() => caches.routes.invalidate()),
    links: readLinkNames,
    foreignSocket: findForeignSocket,
    resolve,
    route: (destination, packet) => getRoute(run, destination, packet),
    sourceAddress: findSourceAddress,
    isPortFree,
    triggerHandshake,
    isTcpReachable,
    probeConnector,
    answersQuery,
    queryDomain: async (...query) => (await import('../name-server/forward.ts')).queryDomain(...query),
    probe: (target, deadlineMs) => probe(run, target, deadlineMs),
    probeSize: (address, request, deadlineMs) => probeSize(run, address, request, deadlineMs),
    raiseProbeMtu: (link, addresses, mtu) => raiseProbeMtu(run, parseLinkName(link), addresses, mtu),
    watch: async (listener) => {
      const relevant = (line: string) => caches.routes.isRelevant(line);
      const follow = (event: HostEvent) => {
        caches.routes.invalidate();
        listener(event);
      };
      const watch = await watchEvents(follow, start, { relevant });
      const resolver = watchResolver(listener, () => caches.resolverFolder ?? resolverFolder);
      caches.routes.follow(true);
      return {
        close: async () => {
          caches.routes.follow(false);
          await Promise.all([watch.close(), resolver.close()]);
        },
      };
    },
    watchFirewall: (listener) => watchFirewall(listener, start),
    watchDevices: (listener, everyMs) => {
      const takeSeen = (link: string) => caches.takeSeen(link);
      return watchDevices(run, listener, { everyMs, outputCache: new OutputCache(), takeSeen });
    },
    foreignDrops: (link, paths) => readForeignDrops(run, caches.ruleset, parseLinkName(link), paths),
    readRefused: (link) => readRefused(run, parseLinkName(link)),
    readRecentDestinations: (link) => readRecentDestinations(run, parseLinkName(link)),
    countSent,
    portStates: (link, port, links) => readPortStates(run, parseLinkName(link), port, links),
    conflictingProcesses: findConflictingProcesses,
    retryUnbound: async () => {
      await run('unbound-control', ['flush_infra', 'all']);
    },
    serveNames: async ({ address, source }, answer) => {
      // Only the daemon needs it, and loading it takes milliseconds.
      const { serveNames } = await import('../name-server/serve-names.ts');
      const isAllowed = (asker: string) => asker === address || (isLoopback(address) && isLoopback(asker));
      return serveNames({ address, source, port: namesPort, isAllowed, answer });
    },
  };
}

/** Lets nft and the kernel check rules without loading them. @throws MapsUnsupported */
async function checkMaps(run: Run): Promise<void> {
  try {
    await run('nft', ['--check', '-f', '-'], { input: mapSample });
  } catch (error) {
    if (error instanceof CommandFailed) throw new MapsUnsupported(stderrOf(error).trim().split('\n')[0] ?? '');
    throw error;
  }
}

/**
 * Runs `wg` and `ip` in parallel, and `nft` if packet rules are requested. With `previous`, reads
 * only the device again, unless it is missing.
 */
async function observe(run: Run, options: ObserveOptions, caches: ObservationCache): Promise<Actual> {
  const { link, firewall, sysctls, served = [], hosts, dns = false, previous = null, acceptsUnread = false } = options;
  parseLinkName(link);
  const cache = caches.of(link);
  const known = previous && (await observeDevice(run, link, caches));
  cache.settle();
  if (previous !== null && known !== null) return { ...previous, device: known };
  const [device, view, rules, values, hostsFile] = await Promise.all([
    readDevice(run, link, cache),
    readView(run, cache, caches, options).catch((error) => {
      if (acceptsUnread && error instanceof CpnError) return { ...emptyView, unread: error.message };
      throw error;
    }),
    firewall ? readFirewall(run, link, cache, firewall) : { firewall: null },
    readSysctls(sysctls),
    hosts ? readHosts(link) : null,
  ]);
  cache.settle();
  if (device === null) caches.forget(link);
  // Without forwarding, the kernel refuses every packet from the tunnel: its replies prove nothing.
  const isForwarding = values[forwardingKey(link)] === '1';
  const found = readResolvers(view.underlay.addresses, caches.stubOwners);
  const named: Pick<Actual, 'dns' | 'dnsFiles'> = dns ? await readNameSettings(run, link, view, caches) : {};
  const resolvers = named.dns?.program === 'systemd-resolved' ? withoutOwn(found, named.dns) : found;
  const { names: _, underlay: outside, ...shown } = view;
  const { forwarded, ...connected } = outside;
  const underlay = { ...connected, ...(isForwarding && forwarded && { forwarded }), ...resolvers };
  const links = served.flatMap(linkFinder(underlay)).filter(isPlainLinkName);
  const unread = [...new Set(links.map(forwardingKey))].filter((key) => !(key in values));
  const all = unread.length === 0 ? values : { ...values, ...(await readSysctls(unread)) };
  return {
    ...shown,
    // As in observeDevice.
    device: view.link !== null || ('unread' in view && (await readLinkNames()).has(link)) ? device : null,
    ...rules,
    sysctls: all,
    isSealed: areSysctlsSealed(),
    hosts: hostsFile,
    ...named,
    underlay,
  };
}

/** The folder of systemd-resolved stays after it ends. */
async function readNameSettings(
  run: Run,
  link: string,
  { link: own, names, underlay }: LinkView,
  caches: ObservationCache,
): Promise<Required<Pick<Actual, 'dns' | 'dnsFiles'>>> {
  const { resolver, dnsFiles } = await findFileResolver(run, link, underlay.addresses);
  const isServing = (own?.addresses ?? []).some(({ address }) =>
    isListening(findServingAddress(resolver, address), namesPort),
  );
  caches.resolverFolder = resolver?.folder || null;
  if (resolver !== null) return { dns: { ...resolver, isServing }, dnsFiles };
  const settings = existsSync(resolverFolder) ? await readResolverSettings(run, link, names) : null;
  return { dns: settings && { ...settings, isServing }, dnsFiles };
}

/** Checks the names first: a userspace socket may belong to another network namespace. */
async function observeDevice(run: Run, link: string, caches: ObservationCache): Promise<Device | null> {
  const device = (await readLinkNames()).has(link) ? await readDevice(run, link, caches.of(link)) : null;
  if (device === null) caches.forget(link);
  return device;
}

const emptyView: LinkView = {
  ...{ link: null, routes: [], onLink: [], rules: [] },
  underlay: {
    ...{ addresses: [], connected: [], routed: [], gateways: [], uplinks: [], links: [] },
    underlayMtu: null,
  },
  names: new Map(),
};

/** Runs `ip` once. With large tables, reads only routes that matter: daemons may have a million. */
async function readView(
  run: Run,
  { readView: read, large }: LinkCache,
  { shown, routes }: ObservationCache,
  options: ObserveOptions,
): Promise<LinkView> {
  const { link, concerns, forwarding, destinations = [] } = options;
  if (concerns !== undefined) routes.concern(link, concerns);
  const more = [...renderPaths(destinations), ...(forwarding ? renderForwarded(link, forwarding) : [])];
  if (!routes.isLarge) {
    try {
      const { text, answers } = await runBatch(run, showInput.trimEnd().split('\n'), more, shown);
      routes.noteSize(false);
      return withAnswers(parseOutput('ip', text, read), options, answers);
    } catch (error) {
      if (!isTooLong(error)) throw error;
      routes.noteSize(true);
    }
  }
  const listing = await routes.list(link, () => listRoutes(run, link));
  const asked = (concerns ?? []).filter((prefix) => !isDefaultRoute(prefix));
  const { text, refused, answers } = await readLarge(run, { asked, more }, listing, large);
  const view = withAnswers(parseOutput('ip', text, read), options, answers);
  if (listing.isWhole) return view;
  const refusing = [...(view.underlay.refusing ?? []), ...refused];
  return { ...view, underlay: { ...view.underlay, refusing, isSampled: true } };
}

/** Adds route lookups. `answers` has those from this host first, then those from the tunnel. */
function withAnswers(
  view: LinkView,
  { link, forwarding, destinations = [] }: ObserveOptions,
  answers: readonly LookupResult[],
): LinkView {
  const isAsked = forwarding !== undefined && view.link?.up === true;
  const underlay = {
    ...view.underlay,
    ...(destinations.length > 0 && { paths: readPaths(destinations, answers) }),
    ...(isAsked && { forwarded: readForwarded(link, forwarding, answers.slice(destinations.length)) }),
  };
  return { ...view, underlay };
}

/** ENODEV, and the errors for an interface of another type, with and without the kernel module. */
const noDeviceMessage = /No such device|Operation not supported|Protocol not supported/;

/** EPROTO: a userspace WireGuard ended while it replied. */
const endedMessage = /Protocol error/;

async function readDevice(run: Run, link: string, cache: LinkCache, mayRepeat = true): Promise<Device | null> {
  try {
    const text = await run('wg', ['show', link, 'dump'], { outputCache: cache.dump });
    const device = parseOutput('wg', text, cache.readDump);
    cache.last = text;
    return device;
  } catch (error) {
    if (noDeviceMessage.test(stderrOf(error))) return null;
    if (mayRepeat && endedMessage.test(stderrOf(error))) return readDevice(run, link, cache, false);
    throw error;
  }
}

/** Ignores failures of `nft`: the next pass loads the rules, and reports a persistent failure. */
async function readFirewall(
  run: Run,
  link: string,
  { table }: LinkCache,
  mode: ObserveOptions['firewall'],
): Promise<Pick<Actual, 'firewall' | 'timeouts'>> {
  try {
    const text = await run('nft', listArgs(link), { outputCache: table });
    const timeouts = parseOutput('nft', text, parseTimeouts);
    return { firewall: parseOutput('nft', text, parseRules), ...(Object.keys(timeouts).length > 0 && { timeouts }) };
  } catch (error) {
    if (stderrOf(error).includes('No such file or directory')) return { firewall: null };
    if (error instanceof MissingTool) return { firewall: mode === true ? null : [withoutTool] };
    if (mode === 'if-possible' && cannotFilter.test(stderrOf(error))) return { firewall: [withoutTool] };
    if (error instanceof CommandFailed) return { firewall: [unreadable] };
    throw error;
  }
}

/** EPERM, and the errors of a kernel without nf_tables. */
const cannotFilter = /Operation not permitted|Operation not supported|Protocol not supported/;

/** Reads /proc/net/dev: /sys shows the network namespace in which it was mounted. */
async function readLinkNames(): Promise<ReadonlySet<string>> {
  const lines = (await readFile('/proc/net/dev', 'utf8')).split('\n');
  return new Set(lines.flatMap((line) => /^\s*(\S+):/.exec(line)?.[1] ?? []));
}
