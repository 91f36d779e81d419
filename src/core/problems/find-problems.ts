import { describePortHolder, type PortHolder, printable } from '../errors/index.ts';
import type { Expiry } from '../map/expiry.ts';
import type { MapAgeWarning } from '../map/map-age.ts';
import type { SyncRefusal } from '../map/sync-refusal.ts';
import type { Address, Prefix } from '../net/cidr.ts';
import { formatEndpoint } from '../net/endpoint.ts';
import { acceptCommand, describeDifference, type PinMismatch } from '../pins/pin-mismatch.ts';
import type { BypassRoute } from '../routing/bypass-route.ts';
import type { HiddenPeer } from '../routing/hidden-peers.ts';
import type { OutsideReport } from '../routing/outside-report.ts';
import { describeForeignRoute, type ForeignRoute } from '../routing/own-routes.ts';
import { remedyOfMissing } from '../routing/route-report.ts';
import { listNames } from '../util/list-names.ts';
import type { PortMismatch } from './port-mismatch.ts';
import type { Problem, ProblemCode } from './problem.ts';

/** What was observed of a network on this host, as far as problems follow from it. */
export interface NetworkFacts {
  readonly link: string;
  /** False after `cpn down`. */
  readonly enabled: boolean;
  /** When this host received that the network was deleted, in ISO 8601; null where it was not. */
  readonly deletedAt: string | null;
  /** The wg-quick file of a deleted network, which a pass could not rename; null where there is none. */
  readonly leftConfig: string | null;
  /** False where there is no interface. */
  readonly hasInterface: boolean;
  /** The UDP port that keeps the interface from coming up; null where none does. */
  readonly portConflict: { readonly port: number; readonly holder: PortHolder | null } | null;
  /** Why addresses, routes and rules of the host cannot be read; absent where they can. */
  readonly unread?: string | undefined;
  /** How the map lacks this host; null where it lists it. */
  readonly unlisted: { readonly found: string; readonly remedy: string } | null;
  /** The number of differences from the intended state. */
  readonly drift: number;
  /** How the endpoint of this host differs from its listen port; null where it does not. */
  readonly portMismatch: PortMismatch | null;
  /** That another host has the identity of this one; null where none is known to. */
  readonly clone: { readonly found: string; readonly remedy: string } | null;
  /** That this host expires soon, or has expired; null where neither is so. */
  readonly ending: Expiry | null;
  readonly pinMismatches: readonly PinMismatch[];
  /** Why no handshake with some peers completes: the network secrets differ. */
  readonly secretMismatches: readonly { readonly detail: string }[];
  readonly hiddenPeers: readonly HiddenPeer[];
  /** Peers that answered before and do not any more. */
  readonly silentPeers: readonly { readonly name: string; readonly address: Address | string }[];
  readonly missingRoutes: readonly { readonly prefix: string; readonly reason: string | null }[];
  /** Prefixes that lead into the tunnel, each with the part that a route of another program diverts. */
  readonly bypassed: ReadonlyMap<Prefix, BypassRoute>;
  /** A subnet of this host within the range of the network; null where there is none. */
  readonly subnetInside: BypassRoute | null;
  /** The names of the devices for which a key that is to be rotated stays; empty where it is rotated, or is not to be. */
  readonly keptFor: readonly string[];
  readonly foreignRoutes: readonly ForeignRoute[];
  readonly outside: OutsideReport;
  /** Routes whose LAN does not answer the probes. */
  readonly silentLans: readonly Prefix[];
  /** Routes to whose LAN this connector has no route, and why. */
  readonly unreachableLans: readonly { readonly route: string; readonly why: string }[];
  readonly mapAge: MapAgeWarning | null;
  readonly refused: SyncRefusal | null;
}

/** Derives the problems and notes of a network from facts, the gravest first. */
export function findProblems(facts: NetworkFacts): Problem[] {
  const { link, enabled, hasInterface, unread, deletedAt, leftConfig } = facts;
  if (deletedAt !== null && !hasInterface) {
    const text = `was taken down: the control plane stated that the network was deleted, received ${deletedAt}`;
    const remedy = `have an admin restore it, and it comes back by itself; or: cpn leave ${link}`;
    const deleted = problem('network-deleted', 'the network was deleted', text, remedy);
    return leftConfig === null ? [deleted] : [deleted, describeLeftConfig(link, leftConfig)];
  }
  if (!enabled && !hasInterface && unread === undefined) {
    return [problem('taken-down', 'taken down', 'was taken down', `cpn up ${link}`), ...findSync(facts)];
  }
  return [
    ...findStateProblems(facts),
    ...findPeerProblems(facts),
    ...findRouteProblems(facts),
    ...findSync(facts),
    ...noteKeptKey(facts),
  ];
}

/** A boot with `wg-quick@` enabled would bring the tunnel of the deleted network up again. */
function describeLeftConfig(link: string, path: string): Problem {
  const summary = `${path} is still there`;
  const text = `${summary}: "wg-quick up ${link}" brings the tunnel of the deleted network up again`;
  const remedy = `make ${path} and its folder writable; the next pass renames the file`;
  return problem('config-left', summary, text, remedy);
}

/** A device receives no new key of the connector that it dials. */
function noteKeptKey({ link, keptFor }: NetworkFacts): Problem[] {
  if (keptFor.length === 0) return [];
  const summary = `its key is not rotated: ${keptFor.length} ${keptFor.length === 1 ? 'device has' : 'devices have'} it`;
  const text = `the key is not rotated by itself, as devices have it in their profiles: ${listNames(keptFor.map(printable))}`;
  return [
    { code: 'key-held', severity: 'note', summary, text, remedy: `cpn rotate-key ${link}, and a new profile for each` },
  ];
}

function findStateProblems(facts: NetworkFacts): Problem[] {
  const { link, hasInterface, unread, unlisted, drift, portMismatch, ending, clone, mapAge } = facts;
  if (unread !== undefined) {
    const text = `addresses, routes and rules of this host cannot be read: ${unread}`;
    return [problem('host-unread', 'the routes of this host cannot be read', text, `cpn doctor ${link}`)];
  }
  const differences = `${drift} ${drift === 1 ? 'difference' : 'differences'} from its intended state`;
  return [
    ...(unlisted === null
      ? []
      : [
          problem(
            'peer-unlisted',
            'the control plane does not list this host',
            `the control plane ${unlisted.found}`,
            unlisted.remedy,
          ),
        ]),
    ...(hasInterface ? [] : [describeMissing(facts)]),
    // One that ends soon still works.
    ...(ending?.isOver ? [problem('peer-expired', 'this host expired', ending.found, ending.remedy)] : []),
    ...(clone === null
      ? []
      : [problem('identity-cloned', 'another host has the identity of this one', clone.found, clone.remedy)]),
    ...(drift === 0 || !hasInterface
      ? []
      : [problem('drift', differences, `has ${differences}`, `cpn plan ${link}, and cpn reconcile ${link}`)]),
    ...(portMismatch === null ? [] : [describePortMismatch(portMismatch, link)]),
    ...(mapAge?.isOver
      ? [
          problem(
            'map-expired',
            'the control plane no longer confirms the map',
            mapAge.found,
            'check with "cpn doctor" why the control plane does not answer, and that "cpn run" runs',
          ),
        ]
      : []),
  ];
}

function describeMissing({ link, portConflict }: NetworkFacts): Problem {
  if (portConflict === null)
    return problem('interface-missing', 'its interface is missing', 'is not there', `cpn reconcile ${link}`);
  const { port, holder } = portConflict;
  const move = `cpn set ${link} --listen-port PORT`;
  const [by, name, remedy] =
    holder === null
      ? ['another program', 'another program', `stop that program (ss -lunp sport = :${port}), or ${move}`]
      : [holder.link, describePortHolder(holder), `cpn leave ${holder.link}, cpn down ${holder.link}, or ${move}`];
  const summary = `UDP port ${port} is in use by ${by}`;
  return problem('interface-missing', summary, `is not there: UDP port ${port} is in use by ${name}`, remedy);
}

function describePortMismatch({ endpoint, bound }: PortMismatch, link: string): Problem {
  const text = `peers dial ${formatEndpoint(endpoint)}, and ${link} listens on ${bound}`;
  return problem('port-mismatch', text, text, `cpn set ${link} --listen-port ${endpoint.port}`);
}

function findPeerProblems(facts: NetworkFacts): Problem[] {
  const { link, pinMismatches, secretMismatches, hiddenPeers, silentPeers } = facts;
  return [
    ...pinMismatches.map((mismatch) => {
      const summary = `${printable(mismatch.name)} changed without a signed proof`;
      const text = `${summary}: ${describeDifference(mismatch)}`;
      return problem('pin-mismatch', summary, text, `verify the change, then type ${acceptCommand(mismatch, link)}`);
    }),
    ...secretMismatches.map(({ detail }) => {
      const remedy = `cpn set ${link} --network-secret-file PATH, here or there`;
      return problem('secret-mismatch', 'network secrets differ', printable(detail), remedy);
    }),
    ...hiddenPeers.map(({ peer, link: other }) => {
      const summary = `${printable(peer.name)} is unreachable`;
      const text = `${summary}: this host has its address ${peer.address} itself, on ${other}`;
      const remedy = `cpn leave ${link} or cpn leave ${other}, and join again for another address`;
      return problem('peer-hidden', summary, text, remedy);
    }),
    ...silentPeers.map(({ name, address }) => {
      const text = `${printable(name)} does not answer`;
      return problem('peer-silent', text, text, `cpn explain ${address}`);
    }),
  ];
}

function findRouteProblems(facts: NetworkFacts): Problem[] {
  const { link, missingRoutes, bypassed, subnetInside, foreignRoutes, outside, silentLans, unreachableLans } = facts;
  return [
    ...missingRoutes.map(({ prefix, reason }) => {
      const why = reason ?? 'it is not on this host';
      const remedy = remedyOfMissing(why) ?? `cpn reconcile ${link}`;
      return problem('route-missing', `${prefix}: ${why}`, `${prefix} is not reached: ${why}`, remedy);
    }),
    ...[...bypassed].map(([prefix, bypass]) => {
      const text = `${bypass.prefix} of ${prefix} leads to ${bypass.link}`;
      const remedy = `ip route delete ${bypass.prefix} dev ${bypass.link}, unless it is meant to be`;
      return problem('route-bypassed', text, text, remedy);
    }),
    ...foreignRoutes.flatMap((route) =>
      route.problem === null
        ? []
        : [
            problem(
              'route-foreign',
              `a route to ${route.prefix} into ${link} is not of this network`,
              describeForeignRoute(route, link),
              route.remedy,
            ),
          ],
    ),
    ...outside.entries.flatMap(({ prefix, problem: why }) =>
      why === null
        ? []
        : [problem('tunnel-bypassed', `${prefix} goes outside the full tunnel`, `${prefix}: ${why}`, null)],
    ),
    ...silentLans.map((route) => {
      const text = `the LAN behind ${route} does not answer`;
      return problem('lan-silent', text, text, 'check the LAN, its cable and the targets of --probe');
    }),
    ...unreachableLans.map(({ route, why }) => {
      const text = `this host has no route to the LAN behind ${route}`;
      const remedy = 'start its interface, or give this host a route there';
      return problem('lan-unreachable', `no route to the LAN behind ${route}`, `${text} (${why})`, remedy);
    }),
    ...(subnetInside === null ? [] : [noteSubnet(subnetInside)]),
  ];
}

/** The host prefers its own subnet, as a café has it. The rest of the range goes through the tunnel. */
function noteSubnet({ prefix, link }: BypassRoute): Problem {
  const text = `${prefix}, a subnet of this host on ${link}, lies in the range of the network and stays local`;
  return { code: 'subnet-inside', severity: 'note', summary: text, text, remedy: null };
}

const refusals: Readonly<Record<SyncRefusal, string>> = {
  token: 'the control plane refuses the token of this host',
  forbidden: 'the control plane does not let this host read the network',
  gone: 'the control plane does not know the network',
};

/** A suspended or expired peer keeps its key and address: a new join is no remedy. */
const resume = 'an admin resumes this host: "cpn peer resume", or "cpn peer update --expires" if it expired';

function findSync({ link, refused }: NetworkFacts): Problem[] {
  if (refused === null) return [];
  const remedy = refused === 'forbidden' ? resume : `cpn reconcile ${link}, or join it again`;
  return [problem('sync-refused', refusals[refused], refusals[refused], remedy)];
}

/** Packets of the tunnel that packet rules of other programs drop. */
export function describeDropped(drop: string): Problem {
  return problem('packets-dropped', 'packet rules of another program drop packets', drop, null);
}

/** That it is unknown whether other programs drop packets. A host that forwards may lose all that it forwards. */
export function describeUnknownDrops(text: string, forwards: boolean): Problem {
  const summary = 'packet rules of other programs cannot be read';
  return { code: 'rules-unread', severity: forwards ? 'problem' : 'note', summary, text, remedy: 'sudo cpn doctor' };
}

/** That the status of a network could not be computed at all. */
export function describeFailure(message: string): Problem {
  return problem('state-unreadable', printable(message), message, null);
}

function problem(code: ProblemCode, summary: string, text: string, remedy: string | null): Problem {
  return { code, severity: 'problem', summary, text, remedy };
}
