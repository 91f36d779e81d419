import { describeHeldNamesPort, describePortTaken, HostsFileNotUpdated, HostUnread } from '../errors/index.ts';
import type { Id, PeerId } from '../map/model.ts';
import type { SyncRefusal } from '../map/sync-refusal.ts';
import { type DnsFailure, describeFailure, findRemedy } from '../names/split-dns.ts';
import { listNames } from '../util/list-names.ts';
import { entry, splitMessage } from './entry.ts';

const checkSync = 'run "cpn doctor": it shows whether the daemon runs, and why the control plane does not answer';
const sameOnBoth = 'let it pass If-None-Match, Prefer, ETag and Preference-Applied unchanged';
const phases = {
  announcing: 'the control plane may not have the new key yet',
  confirming: 'no peer has completed a handshake with the new key yet',
  returning: 'no peer completed a handshake with the new key, and the control plane may still list it',
};
const refusals: Readonly<Record<SyncRefusal, string>> = {
  token: 'the control plane refuses the token of this host',
  forbidden: 'the control plane does not let this host read the network',
  gone: 'the control plane does not have the network',
};
const hostUnread = ({ interface: link, unread }: { interface: string; unread: string }) =>
  splitMessage(new HostUnread(link, unread));
const hostsFile = ({ interface: link, problem }: { interface: string; problem: string }) =>
  splitMessage(new HostsFileNotUpdated(link, problem));
const extend = ({ network, peer }: { network: Id; peer: PeerId }) =>
  `an admin can extend it: cpn peer update ${network} ${peer} --expires 90d`;

interface PortFacts {
  readonly interface: string;
  readonly port: number | null;
  readonly holder: string | null;
  readonly holder_network: string | null;
}
const portTaken = ({ interface: link, port, holder: by, holder_network }: PortFacts) =>
  describePortTaken(
    port,
    by === null ? null : { link: by, network: holder_network ?? '' },
    `"cpn set ${link} --listen-port PORT"`,
  );

/** Problems of a network on this host as a whole, and of this host in it. */
/** A file of ours for a resolver that is no longer wanted. */
interface LeftFileFacts {
  readonly path: string;
  readonly program: string;
  readonly is_there: boolean;
  /** What prevents the removal, and what to type; null if the attempt alone shows it. */
  readonly reason: string | null;
  readonly is_down: boolean;
}

export const networkEntries = {
  'state-unreadable': entry<{ error: string }>({
    title: 'the network cannot be evaluated',
    severity: 'problem',
    text: ({ error }) => error,
    isWarning: false,
  }),
  'host-unread': entry<{ unread: string }>({
    title: 'addresses, routes and rules of this host cannot be read',
    severity: 'problem',
    summary: () => 'the routes of this host cannot be read',
    text: (facts) => [hostUnread(facts).text, hostUnread(facts).remedy].join('; '),
    remedy: ({ interface: link }) => `cpn doctor ${link}`,
  }),
  'taken-down': entry({
    title: 'the network was taken down on this host',
    severity: 'problem',
    summary: () => 'taken down',
    text: ({ interface: link }) => `${link} was taken down`,
    remedy: ({ interface: link }) => `"cpn up ${link}" brings it up`,
  }),
  'network-deleted': entry<{ network: string; service: string; received_at: string; resumes: boolean }>({
    title: 'the network of this host was deleted',
    severity: 'problem',
    summary: () => 'the network was deleted',
    text: ({ network, service, received_at }) =>
      `network ${network} was deleted at ${service} (received ${received_at}): the tunnel is down`,
    remedy: ({ interface: link, service, resumes }) => {
      const back = resumes ? 'it comes up automatically' : `"cpn up ${link}" brings it up`;
      return `${back} once ${service} has the network again; "cpn leave ${link}" removes its stored state`;
    },
  }),
  'config-left': entry<{ path: string }>({
    title: 'the wg-quick file of a deleted network is still there',
    severity: 'problem',
    summary: ({ path }) => `${path} is still there`,
    text: ({ interface: link, path }) =>
      `${path} is still there: "wg-quick up ${link}" brings the tunnel of the deleted network up again`,
    remedy: ({ path }) => `make ${path} and its folder writable; the next pass renames the file`,
  }),
  'interface-missing': entry<Omit<PortFacts, 'interface'>>({
    title: 'the interface is missing',
    severity: 'problem',
    summary: ({ port, holder }) =>
      port === null ? 'its interface is missing' : `UDP port ${port} is in use by ${holder ?? 'another program'}`,
    text: (facts) => (facts.port === null ? 'is missing' : `is missing: ${portTaken(facts).problem}`),
    remedy: (facts) => (facts.port === null ? `cpn reconcile ${facts.interface}` : portTaken(facts).remedy),
    isWarning: false,
  }),
  'peer-unlisted': entry<{ service: string; network: string; peer: PeerId; has_other_key: boolean }>({
    title: 'the control plane does not list this host',
    severity: 'problem',
    summary: () => 'the control plane does not list this host',
    text: ({ service, network, peer, has_other_key }) =>
      has_other_key
        ? `${service} lists another key for this host (peer ${peer}) in network ${network}: the state of this host is a copy, or older than the last key rotation`
        : `${service} no longer lists this host (peer ${peer}) in network ${network}`,
    remedy: ({ interface: link, has_other_key }) =>
      has_other_key
        ? 'restore the newer state file, or take the peer over with "cpn join" and a new enrolment key'
        : `"cpn leave ${link}" removes the tunnel; "cpn join" with a new key joins again`,
  }),
  drift: entry<{ differences: number }>({
    title: 'the host differs from its intended state',
    severity: 'problem',
    summary: (facts) => countDifferences(facts),
    text: (facts) => `has ${countDifferences(facts)}`,
    remedy: ({ interface: link }) => `cpn plan ${link}, and cpn reconcile ${link}`,
    isWarning: false,
  }),
  'repair-postponed': entry<{ note: string }>({
    title: 'drift keeps coming back',
    severity: 'note',
    text: ({ note }) => note,
  }),
  'port-mismatch': entry<{ endpoint: string; endpoint_port: number; listen_port: number }>({
    title: 'peers dial a port on which the tunnel does not listen',
    severity: 'problem',
    text: ({ interface: link, endpoint, listen_port }) =>
      `peers dial ${endpoint}, and ${link} listens on ${listen_port}`,
    remedy: ({ interface: link, endpoint_port }) => `cpn set ${link} --listen-port ${endpoint_port}`,
    isWarning: false,
  }),
  'awaiting-approval': entry<{ since: string; network: Id; peer: PeerId; fingerprint: string }>({
    title: 'this host waits for approval',
    severity: 'problem',
    summary: () => 'waits for the approval of an administrator',
    text: ({ since, fingerprint }) =>
      `this host waits for the approval of an administrator since ${since}, and reaches no other peer; its fingerprint is ${fingerprint}`,
    remedy: ({ network, peer }) => `an admin compares the fingerprint and types: cpn peer approve ${network} ${peer}`,
  }),
  'peer-expired': entry<{ expires_at: string; network: Id; peer: PeerId }>({
    title: 'this host expired',
    severity: 'problem',
    summary: () => 'this host expired',
    text: ({ expires_at }) => `this host expired on ${expires_at}: no other host talks to it`,
    remedy: extend,
  }),
  'expires-soon': entry<{ expires_at: string; days: number; network: Id; peer: PeerId }>({
    title: 'this host expires soon',
    severity: 'note',
    text: ({ expires_at, days }) =>
      `this host expires ${days === 1 ? 'within a day' : `in ${days} days`}, on ${expires_at}: no other host talks to it after that`,
    remedy: extend,
  }),
  'login-expired': entry<{ expires_at: string; url: string }>({
    title: 'the last login of the user of this host is too long ago',
    severity: 'problem',
    summary: () => 'the user of this host must log in again',
    text: ({ expires_at }) =>
      `this host expired on ${expires_at}, because the last login of its user is too long ago: no other host talks to it`,
    remedy: ({ url }) => `log in again at ${url}`,
  }),
  'login-expires-soon': entry<{ expires_at: string; url: string }>({
    title: 'the user of this host must log in again soon',
    severity: 'note',
    text: ({ expires_at }) =>
      `this host expires on ${expires_at} unless its user logs in before: no other host talks to it after that`,
    remedy: ({ url, expires_at }) => `log in again at ${url} before ${expires_at}`,
  }),
  'identity-cloned': entry<{ since: string }>({
    title: 'another host uses the identity of this one',
    severity: 'problem',
    summary: () => 'another host uses the identity of this one',
    text: ({ interface: link, since }) =>
      `another host has used the identity of ${link} since ${since}, from a copied disk, image or folder: each receives packets for the other`,
    remedy: ({ interface: link }) => `on the copy, type "cpn leave ${link} --keep-peer", and join it with a new key`,
  }),
  'map-expired': entry<{ confirmed_at: string }>({
    title: 'the control plane no longer confirms the map',
    severity: 'problem',
    summary: () => 'the control plane no longer confirms the map',
    text: ({ confirmed_at }) =>
      `the control plane last confirmed the map at ${confirmed_at}; this connector relays and serves nothing until it confirms it again`,
    remedy: () => checkSync,
  }),
  'map-aging': entry<{ confirmed_at: string; ends_at: string }>({
    title: 'the control plane does not confirm the map',
    severity: 'note',
    text: ({ confirmed_at, ends_at }) =>
      `the control plane last confirmed the map at ${confirmed_at}; without another confirmation, this connector stops relaying and serving at ${ends_at}`,
    remedy: () => checkSync,
  }),
  'map-rolled-back': entry<{ network: string; revision: string }>({
    title: 'the newest map was rolled back',
    severity: 'note',
    text: ({ network, revision }) =>
      `network ${network} was rolled back: with its newest map (${revision}) neither the control plane nor a peer that answered before responded`,
    remedy: () => 'cpn retries when the network changes',
  }),
  'sync-refused': entry<{ refused: SyncRefusal }>({
    title: 'the control plane refuses this host',
    severity: 'problem',
    text: ({ refused }) => refusals[refused],
    // A suspended or expired peer keeps its key and address: a new join is no remedy.
    remedy: ({ interface: link, refused }) =>
      refused === 'forbidden'
        ? 'an admin resumes this host: "cpn peer resume", or "cpn peer update --expires" if it expired'
        : `cpn reconcile ${link}, or join it again`,
    isWarning: false,
  }),
  'no-access': entry<{ service: string; network: string; has_id: boolean }>({
    title: 'this host cannot read the map of its network',
    severity: 'note',
    text: ({ interface: link, service, network, has_id }) => {
      const stays = `${link} uses the map that it received at the join of network ${network}`;
      return has_id
        ? `${service} gave this host no token to read its network with; ${stays}`
        : `${service} sent no id of this host's network; ${stays}`;
    },
    remedy: ({ has_id }) =>
      has_id
        ? 'to receive changes with a personal token, type "cpn join" with the same key again, and --token-file'
        : null,
  }),
  'replies-early': entry({
    title: 'long polls are answered immediately',
    severity: 'note',
    text: () =>
      'changes arrive late: the control plane, or a proxy in front of it, answers long polls immediately, without a change',
    remedy: () => `turn off caching in the proxy, and ${sameOnBoth}`,
  }),
  'deltas-refused': entry({
    title: 'a proxy refuses the status 226',
    severity: 'note',
    text: () =>
      'a proxy in front of the control plane refuses the status 226: this host reads the whole map for each change, and does not confirm removals',
    remedy: () => 'let the proxy pass A-IM and the status 226',
  }),
  drained: entry({
    title: 'this connector is out of service',
    severity: 'note',
    text: () => 'out of service since "cpn drain"',
    remedy: ({ interface: link }) => `"cpn drain ${link} --undo" puts it back`,
  }),
  'key-held': entry<{ devices: readonly string[] }>({
    title: 'the key is not rotated, because profiles of devices contain it',
    severity: 'note',
    summary: ({ devices }) =>
      `its key is not rotated: ${devices.length} ${devices.length === 1 ? 'device has' : 'devices have'} it`,
    text: ({ devices }) =>
      `the key is not rotated automatically, because profiles of devices contain it: ${listNames(devices)}`,
    remedy: ({ interface: link }) => `cpn rotate-key ${link}, then export a new profile for each`,
    isWarning: false,
  }),
  'key-changing': entry<{ phase: keyof typeof phases }>({
    title: 'a key rotation is incomplete',
    severity: 'note',
    text: ({ interface: link, phase }) => `the key rotation of ${link} is incomplete: ${phases[phase]}`,
    remedy: ({ interface: link }) => `the daemon, or "cpn reconcile ${link}", continues it`,
  }),
  'session-kept': entry<{ from: string; to: string; address: string }>({
    title: 'an SSH session stays until it ends',
    severity: 'note',
    text: ({ from, to, address }) =>
      `the SSH session from ${from} to ${to} stays until it ends; a new one is refused: ${
        to === address ? 'only the tunnel leads' : 'the tunnel leads'
      } to ${address}${to === address ? '' : ' alone'} from now on`,
  }),
  'hosts-not-updated': entry<{ problem: string }>({
    title: 'the hosts file cannot be changed',
    severity: 'note',
    text: (facts) => hostsFile(facts).text,
    remedy: (facts) => hostsFile(facts).remedy,
  }),
  'domain-refused': entry<{ domain: string; reason: string }>({
    title: 'a domain behind a route is not resolved there',
    severity: 'note',
    summary: ({ domain, reason }) => `${domain}: ${reason}`,
    text: ({ domain, reason }) => `${domain} is resolved as before: ${reason}`,
    // The table of domains has it.
    isWarning: false,
  }),
  'domain-silent': entry<{ domain: string; servers: readonly string[] }>({
    title: 'the DNS servers of a domain do not answer',
    severity: 'problem',
    text: ({ domain, servers }) => `no DNS server of ${domain} answers: ${listNames(servers)}`,
    remedy: ({ domain, servers: [server] }) => findRemedy('silent', domain, server),
    // The table of domains has it.
    isWarning: false,
  }),
  'domain-failing': entry<{ domain: string; servers: readonly string[]; failure: DnsFailure }>({
    title: 'the DNS servers of a domain resolve no name',
    severity: 'problem',
    text: ({ domain, servers, failure }) =>
      `no DNS server of ${domain} resolves it: ${listNames(servers)} ${describeFailure(failure, servers)}`,
    remedy: ({ domain, servers: [server], failure }) => findRemedy(failure, domain, server),
    // The table of domains has it.
    isWarning: false,
  }),
  'names-port-taken': entry<{ address: string; port: number }>({
    title: 'another program holds the port of the name server',
    severity: 'problem',
    text: ({ address, port }) => `${describeHeldNamesPort(address, port).text}, where the daemon serves names`,
    remedy: ({ address, port }) => describeHeldNamesPort(address, port).remedy,
    // The table of domains has it.
    isWarning: false,
  }),
  'dns-file-left': entry<LeftFileFacts>({
    title: 'a file for a resolver was not taken back',
    severity: 'problem',
    summary: ({ path }) => `${path} was not taken back`,
    text: ({ path, program, is_there }) =>
      is_there ? `${path} is left, which ${program} reads` : `${program} may still use ${path}, which is removed`,
    remedy: ({ interface: link, reason, is_down }) => {
      const again = is_down ? [`"cpn down ${link}", or "cpn leave ${link}", tries again`] : [];
      return [...(reason === null ? [] : [reason]), ...again].join('; then ');
    },
  }),
  'dns-ignored': entry<{ service: string; servers: readonly string[] }>({
    title: 'the resolvers of the network are not used',
    severity: 'note',
    text: ({ service, servers }) =>
      `${service} names ${servers.join(', ')} as DNS for this network, without a domain; cpn sends only the names of domains to a network`,
  }),
  'config-remark': entry<{ service: string; remark: string }>({
    title: 'a line of the wg-quick text of the control plane is not used',
    severity: 'note',
    text: ({ service, remark }) => `of the wg-quick text from ${service}: ${remark}`,
  }),
};

function countDifferences({ differences }: { readonly differences: number }): string {
  return `${differences} ${differences === 1 ? 'difference' : 'differences'} from its intended state`;
}
