import type { NetworkStatus, PeerStatus, RulesStatus } from '../../app/problems/network-status.ts';
import { printable } from '../../core/errors/index.ts';
import type { InboundDrop } from '../../core/forward/foreign/find-inbound-drop.ts';
import { describeAge, describeDuration } from '../../core/health/peer-health.ts';
import type { Reachability } from '../../core/health/report/compose-report.ts';
import { nameWithLabel } from '../../core/names/label.ts';
import { summarize, toSentence } from '../../core/problems/problem.ts';
import type { OutsideReport } from '../../core/routing/outside-report.ts';
import { describeRefused } from '../../core/rules/refused.ts';
import type { Certificate } from '../../core/tls/certificate.ts';
import type { FormerMembership } from '../../store/former-networks.ts';
import { describeChange } from './change-text.ts';
import { bold, type Cell, describeBytes, dim, green, red, table, yellow } from './output.ts';
import { describeOptions, optionsToJson } from './show-options.ts';
import { cut, fold, type Narrowing } from './terminal/fit.ts';

/** Bytes per second of a peer. Null if unknown. */
export interface PeerRates {
  readonly received: number | null;
  readonly sent: number | null;
}

type FindRates = (link: string, peer: PeerStatus) => PeerRates;

const unknownRates: FindRates = () => ({ received: null, sent: null });

/** The JSON of a network's status, a contract for scripts. */
export function statusToJson(status: NetworkStatus) {
  const {
    network,
    interface: link,
    state,
    address,
    publicKey,
    listenPort,
    mtu,
    routes,
    domains,
    drift,
    sync,
    failure,
  } = status;
  const warnings = failure ? [...status.warnings, failure.message] : status.warnings;
  return {
    network,
    interface: link,
    state,
    address,
    public_key: publicKey,
    key_since: status.keySince,
    ...(status.deletedAt !== null && { deleted_at: status.deletedAt }),
    ...(status.expiresAt !== null && { expires_at: status.expiresAt }),
    ...(status.mapEnd !== null && { map_valid_until: status.mapEnd }),
    listen_port: listenPort,
    mtu,
    ...(status.pathMtu !== null && {
      path_mtu: { peer: status.pathMtu.peer, measured_at: status.pathMtu.measuredAt },
    }),
    ...(status.relay !== null && { relay: status.relay }),
    ...(status.options !== null && { options: optionsToJson(status.options) }),
    peers: status.peers.map((peer) => ({
      id: peer.id,
      name: peer.name,
      dns_label: peer.label,
      type: peer.type,
      public_key: peer.publicKey,
      address: peer.address,
      endpoint: peer.endpoint,
      ...(peer.endpointRefused !== null && { endpoint_refused: peer.endpointRefused }),
      ...(peer.endpointChoice !== null && {
        endpoint_name: peer.endpointChoice.name,
        endpoint_addresses: peer.endpointChoice.addresses,
      }),
      allowed_ips: peer.allowedIps,
      state: peer.state,
      ...(peer.path !== null && { path: peer.path }),
      ...(peer.via !== null && { via: peer.via }),
      ...(peer.since !== null && { since: peer.since }),
      latest_handshake: peer.latestHandshake === null ? null : new Date(peer.latestHandshake * 1000).toISOString(),
      rx_bytes: peer.rxBytes,
      tx_bytes: peer.txBytes,
      pin: peer.pin,
      claimed_public_key: peer.claimedPublicKey,
      ...(peer.secret !== null && { secret: peer.secret }),
    })),
    routes: routes.map(({ reason, remedy: _, ...route }) => (reason === null ? route : { ...route, reason })),
    ...(domains.length > 0 && {
      domains: domains.map(({ reason, ...domain }) => (reason === null ? domain : { ...domain, reason })),
    }),
    drift,
    ...(status.rules !== null && { rules: rulesToJson(status.rules) }),
    ...(status.inbound !== null && { inbound: inboundToJson(status.inbound) }),
    ...(status.foreignRoutes.length > 0 && {
      foreign_routes: status.foreignRoutes.map(({ problem, ...route }) =>
        problem === null ? route : { ...route, problem },
      ),
    }),
    ...outsideToJson(status.outside),
    sync: {
      mode: sync.mode,
      last_success: sync.lastSuccess,
      ...(sync.error !== null && { error: sync.error }),
      ...(sync.refused !== null && { refused: sync.refused }),
    },
    ...(status.authorities.length > 0 && {
      ca_certificates: status.authorities.map(({ subject, validTo }) => ({
        subject,
        expires_at: new Date(validTo).toISOString(),
      })),
    }),
    ...(status.reachability !== null && {
      health: { reachable_by: status.reachability.reachableBy, witnesses: status.reachability.witnesses },
    }),
    ...(status.problems.length > 0 && {
      problems: status.problems.map(({ code, severity, text, remedy }) => ({ code, severity, text, remedy })),
    }),
    ...(warnings.length > 0 && { warnings }),
  };
}

/** Adds no field without a full tunnel. */
function outsideToJson({ entries, omitted }: OutsideReport) {
  if (entries.length === 0) return {};
  const outside = entries.map(({ problem, ...entry }) => (problem === null ? entry : { ...entry, problem }));
  return { outside, ...(omitted > 0 && { outside_omitted: omitted }) };
}

function inboundToJson({ port, author, family, table, reason, command }: InboundDrop) {
  return { state: 'dropped', port, by: author, table: `${family} ${table}`, reason, remedy: command };
}

function rulesToJson(rules: RulesStatus) {
  if (rules.mode === 'open') return rules;
  const { refused, ...rest } = rules;
  return refused === null ? rest : { ...rest, refused };
}

/** A contract for scripts. Adds no field without former networks. */
export function formerToJson(memberships: readonly FormerMembership[]) {
  if (memberships.length === 0) return {};
  const former = memberships.map(({ interface: link, network, peer, service, leftAt }) => ({
    interface: link,
    network,
    peer,
    service: service.url,
    left_at: leftAt,
  }));
  return { former };
}

/** @param columns of the terminal that the text must fit; null for whole rows */
export function statusToText(
  status: NetworkStatus,
  now: Date,
  columns: number | null = null,
  findRates: FindRates = unknownRates,
): string {
  const { peers, routes, domains, drift, outside, sync, warnings } = status;
  const narrowing = columns === null ? null : narrow;
  const parts = [describeHead(status, columns)];
  if (status.reachability !== null) parts.push(...describeReachability(status.reachability));
  parts.push(...describeRules(status).map((line) => fold(line, columns)));
  const options = status.options === null ? [] : describeOptions(status.options);
  if (options.length > 0) parts.push(fold(dim(`options  ${options.join(' ')}`), columns));
  // Without an interface, the state of peers and routes is unknown.
  const isUp = status.state !== 'down';
  if (isUp && peers.length > 0) {
    const rows = peers.map((peer) => peerRow(peer, now, findRates(status.interface, peer)));
    parts.push(withMismatches((some) => table(peerHeader, some, narrowing, columns), rows, peers));
  }
  if (isUp && routes.length > 0) {
    const rows = routes.map(({ prefix, via, state, reason, remedy }) => [
      prefix,
      via ?? '-',
      state,
      [reason, remedy].filter((part) => part !== null).join('; '),
    ]);
    parts.push(table(['route', 'via', 'state', ''], rows, narrowing, columns));
  }
  // Most servers have no local resolver, and lack nothing if their network has no other domain.
  const isPlain = domains.every(({ state, route }) => state === 'refused' && route === null);
  if (isUp && !isPlain) {
    const rows = domains.map(({ domain, servers, state, reason }) => [domain, servers.join(', '), state, reason ?? '']);
    parts.push(table(['domain', 'servers', 'state', ''], rows, narrowing, columns));
  }
  if (drift.length > 0) {
    const names = new Map(peers.map(({ publicKey, name }) => [publicKey, name]));
    parts.push([yellow('drift'), ...drift.map((change) => describeChange(change, names))].join('\n'));
  }
  for (const each of status.problems.filter(({ code }) => code === 'route-foreign')) {
    const paint = each.severity === 'note' ? yellow : red;
    parts.push(`${paint('not ours')} ${toSentence(each)}`);
  }
  parts.push(...describeOutside(outside));
  if (sync.refused !== null) parts.push(describeRefusal(sync.refused, sync.refusal));
  if (sync.error !== null && sync.error !== sync.refusal) parts.push(`${yellow('sync')} ${printable(sync.error)}`);
  if (status.authorities.length > 0) parts.push(fold(dim(describeAuthorities(status.authorities)), columns));
  for (const { text } of status.problems.filter(({ code }) => code === 'key-held'))
    parts.push(fold(`${dim('note')} ${text}`, columns));
  for (const warning of warnings) parts.push(fold(`${yellow('warning')} ${printable(warning)}`, columns));
  return parts.join('\n');
}

function describeAuthorities(authorities: readonly Certificate[]): string {
  const each = authorities.map(
    ({ subject, validTo }) => `"${subject}" until ${new Date(validTo).toISOString().slice(0, 10)}`,
  );
  return `accepts the control plane only with a certificate of ${each.join(', ')}`;
}

function describeOutside({ entries, omitted }: OutsideReport): string[] {
  if (entries.length === 0) return [];
  const rows = entries.map(({ prefix, link, gateway, why, problem }): Cell[] => {
    const by = [link, gateway].filter((part) => part !== null).join(' via ');
    const text = problem === null ? why : `${why}: ${problem}`;
    return [prefix, by === '' ? '-' : by, problem === null ? text : [text, red]];
  });
  const more = omitted === 0 ? [] : [dim(`and ${omitted} more`)];
  return [[table(['outside', 'by', ''], rows), ...more].join('\n')];
}

/** Empty if no host can report. */
function describeReachability({ reachableBy, witnesses }: Reachability): string[] {
  if (witnesses === 0) return [];
  const paint = reachableBy === witnesses ? dim : reachableBy === 0 ? red : yellow;
  return [paint(`reachable by ${reachableBy} of ${witnesses} ${witnesses === 1 ? 'host' : 'hosts'}`)];
}

const mostRefused = 5;

/** Empty in an open network. */
function describeRules({ rules, peers, address }: NetworkStatus): string[] {
  if (rules?.mode !== 'closed') return [];
  const { count, refused } = rules;
  const latest = refused?.latest ?? [];
  const named = latest.slice(0, mostRefused).map((each) => printable(describeRefused(each, peers, address)));
  const more = latest.length - named.length;
  const all = [...named, ...(more > 0 ? [`and ${more} more`] : [])].join('; ');
  return [
    dim(`rules  closed, ${count} ${count === 1 ? 'rule' : 'rules'}`),
    ...(latest.length === 0 ? [] : [`${yellow('refused')} in the last 5 minutes: ${all}`]),
  ];
}

function describeRefusal(refused: string, refusal = 'until the control plane sends a map again'): string {
  return `${red('sync refused')} (${refused}) ${printable(refusal)}`;
}

function describeHead(
  { network, state, problems, address, publicKey, listenPort, mtu, pathMtu, ...status }: NetworkStatus,
  columns: number | null,
): string {
  const paint = { up: green, degraded: yellow, down: red }[state];
  const head = `${bold(status.interface)}  ${paint(state)}`;
  const reason = summarize(problems);
  const why = reason === null ? '' : `\n${fold(`${paint('reason')} ${printable(reason)}`, columns)}`;
  if (network === null) return `${head}${why}`;
  const port = listenPort === null ? '' : ` · port ${listenPort}`;
  const measured = pathMtu === null ? '' : ` (measured to ${printable(pathMtu.peer)})`;
  const size = mtu === null ? '' : ` · MTU ${mtu}${measured}`;
  const since = status.keySince === null ? '' : ` since ${status.keySince.slice(0, 10)}`;
  const end = status.expiresAt === null ? '' : ` · expires ${status.expiresAt.slice(0, 10)}`;
  const key = columns === null ? publicKey : publicKey && cut(publicKey, shortKey);
  const facts = dim(foldFacts(`address ${address}${port}${size} · key ${key}${since}${end}`, columns));
  return `${head}  network ${printable(network.name)} (${network.id})${why}\n${facts}`;
}

/** Long enough to compare a key. JSON and `--wide` contain all of it. */
const shortKey = 12;

/** Folds only between facts, not within one. */
function foldFacts(facts: string, columns: number | null): string {
  const held = facts.replaceAll(/(?<! ·) (?!·)/g, '\u00a0');
  return fold(held, columns).replaceAll('\u00a0', ' ');
}

/** Adds lines below peers: a taken label, a pin mismatch, addresses, and an unused endpoint. */
function withMismatches(
  format: (rows: readonly Cell[][]) => string,
  rows: readonly Cell[][],
  peers: readonly PeerStatus[],
): string {
  const [header = '', ...lines] = format(rows).split('\n');
  // A row that does not fit has indented lines below it.
  const starts = lines.flatMap((line, at) => (line.startsWith('    ') ? [] : [at]));
  return [
    header,
    ...peers.flatMap((peer, at) => [...lines.slice(starts[at], starts[at + 1]), ...describeMismatches(peer)]),
  ].join('\n');
}

function describeMismatches(peer: PeerStatus): string[] {
  return [
    ...(peer.labelTaken === null ? [] : [yellow(`  ${describeTaken(peer, peer.labelTaken)}`)]),
    ...(peer.claim === null ? [] : [red(`  ${peer.pin}: ${printable(peer.claim)}`)]),
    ...(peer.endpointChoice === null ? [] : [dim(`  ${describeChoice(peer.endpointChoice)}`)]),
    ...(peer.endpointRefused === null ? [] : [yellow(`  endpoint not used: ${printable(peer.endpointRefused)}`)]),
  ];
}

function describeTaken({ label }: PeerStatus, { label: own, by }: NonNullable<PeerStatus['labelTaken']>): string {
  return printable(`DNS name ${label}: the DNS name ${own} is of ${by}`);
}

function describeChoice({ name, addresses }: NonNullable<PeerStatus['endpointChoice']>): string {
  return printable(`${name} has ${addresses.length} addresses: ${addresses.join(', ')}`);
}

/** Truncates names first, and then hides the types of peers, which `--wide` shows. */
const narrow: Narrowing = { cut: { peer: 12, via: 12 }, hide: ['type'] };

const peerHeader = ['peer', 'type', 'address', 'state', 'handshake', 'endpoint', 'received', 'sent'];

function peerRow(peer: PeerStatus, now: Date, { received, sent }: PeerRates): Cell[] {
  const paint = { connected: green, relayed: dim, idle: dim, stale: red, never: yellow }[peer.state];
  return [
    nameWithLabel(peer),
    peer.type,
    peer.address,
    [peer.state, paint],
    peer.latestHandshake === null ? '-' : describeAge(now.getTime() / 1000 - peer.latestHandshake),
    describePath(peer, now),
    describeTraffic(peer.rxBytes, received),
    describeTraffic(peer.txBytes, sent),
  ];
}

function describePath({ path, via, since, endpoint }: PeerStatus, now: Date): string {
  if (via !== null) return `via ${via}`;
  const age = path === 'direct' && since !== null ? now.getTime() - Date.parse(since) : null;
  return age === null ? (endpoint ?? '-') : `${endpoint ?? '-'} (direct for ${describeDuration(age / 1000)})`;
}

function describeTraffic(bytes: number, rate: number | null): string {
  return rate === null ? describeBytes(bytes) : `${describeBytes(bytes)} (${describeBytes(Math.round(rate))}/s)`;
}
