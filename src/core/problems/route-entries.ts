import { remedyOfMissing } from '../routing/route-report.ts';
import { entry } from './entry.ts';

const notOnHost = 'it is not on this host';

interface LanFacts {
  readonly route: string;
  readonly is_withdrawn: boolean;
}
const outOfService = ({ is_withdrawn }: LanFacts, until: string) =>
  is_withdrawn
    ? `the route is out of service here until ${until}`
    : 'the control plane still has the route in service here, and others send to it';

const untried = {
  failed: ({ target, error }: { target: string; error: string }) => `probe target ${target} cannot be probed: ${error}`,
  unresolved: ({ target }: { target: string }) => `probe target ${target} has no address; its name does not resolve`,
  elsewhere: ({ target }: { target: string }) => `probe target ${target} is not behind a route that this host serves`,
};

/** Problems of routes, of the LANs behind them, and of packet rules of other programs. */
export const routeEntries = {
  'route-missing': entry<{ route: string; reason: string | null }>({
    title: 'a route of the network is unreachable',
    severity: 'problem',
    summary: ({ route, reason }) => `${route}: ${reason ?? notOnHost}`,
    text: ({ route, reason }) => `${route} is unreachable: ${reason ?? notOnHost}`,
    remedy: ({ interface: link, reason }) => remedyOfMissing(reason ?? '') ?? `cpn reconcile ${link}`,
    isWarning: false,
  }),
  'route-bypassed': entry<{ route: string; part: string; by: string; is_range: boolean }>({
    title: 'a route of another program diverts a part of a route',
    severity: 'problem',
    text: ({ route, part, by }) => `${part} of ${route} leads to ${by}`,
    remedy: ({ part, by }) => `ip route delete ${part} dev ${by}, unless this is intended`,
    // The table of routes has no row for the range.
    isWarning: ({ is_range }) => is_range,
  }),
  'route-foreign': entry<{
    route: string;
    table: string;
    protocol: string;
    problem: string | null;
    command: string;
  }>({
    title: 'a route into the tunnel does not belong to this network',
    severity: ({ problem }) => (problem === null ? 'note' : 'problem'),
    summary: ({ interface: link, route }) => `a route to ${route} into ${link} does not belong to this network`,
    text: ({ interface: link, route, table, protocol, problem }) => {
      const of = table === 'main' ? '' : ` of table ${table}`;
      const why = problem === null ? '' : `: ${problem}`;
      return `the route to ${route}${of} into ${link} (${protocol}) does not belong to this network${why}`;
    },
    remedy: ({ problem, command }) => (problem === null ? `${command}, unless this is intended` : command),
    isWarning: false,
  }),
  'tunnel-bypassed': entry<{ prefix: string; problem: string }>({
    title: 'addresses go outside the full tunnel',
    severity: 'problem',
    summary: ({ prefix }) => `${prefix} goes outside the full tunnel`,
    text: ({ prefix, problem }) => `${prefix}: ${problem}`,
    isWarning: false,
  }),
  'subnet-inside': entry<{ subnet: string; on: string }>({
    title: 'a subnet of this host lies in the range of the network',
    severity: 'note',
    text: ({ subnet, on }) =>
      `${subnet}, a subnet of this host on ${on}, lies in the range of the network and stays local`,
  }),
  'lan-silent': entry<LanFacts & { targets: readonly string[] }>({
    title: 'the LAN behind a route does not answer',
    severity: 'problem',
    summary: ({ route }) => `the LAN behind ${route} does not answer`,
    text: (facts) => {
      const { route, targets } = facts;
      const asked = targets.length === 0 ? 'no target has an address' : `target ${targets.join(', ')}`;
      return `the LAN behind ${route} does not answer (${asked}); ${outOfService(facts, 'it does')}`;
    },
    remedy: () => 'check the LAN, its cable and the targets of --probe',
  }),
  'lan-unreachable': entry<LanFacts & { reason: string }>({
    title: 'the path to the LAN behind a route is gone',
    severity: 'problem',
    summary: ({ route }) => `no path to the LAN behind ${route}`,
    text: (facts) =>
      `this host has no path to the LAN behind ${facts.route} (${facts.reason}); ${outOfService(facts, 'there is one')}`,
    remedy: () => 'start its interface, give this host a route there, or remove what drops the packets',
  }),
  'probe-untried': entry<{ target: string; why: keyof typeof untried; error: string }>({
    title: 'a probe target cannot be used',
    severity: 'note',
    text: (facts) => untried[facts.why](facts),
    remedy: ({ interface: link }) => `"cpn set ${link} --probe" names other targets`,
  }),
  'map-unused': entry<{ network: string; route: string; local: string; isSwapped: boolean }>({
    title: 'a mapped prefix is no route that this connector serves',
    severity: 'note',
    text: ({ network, route, local }) =>
      `${route}, which --map maps to ${local}, is no route of network ${network} that this host serves`,
    remedy: ({ interface: link, route, local, isSwapped }) =>
      isSwapped
        ? `the route comes first: "cpn set ${link} --drop-map ${route} --map ${local}=${route}"`
        : `an admin can add the route, or "cpn set ${link} --drop-map ${route}" removes the map`,
  }),
  'packets-dropped': entry<{ drop: string; command: string }>({
    title: 'packet rules of another program drop packets',
    severity: 'problem',
    summary: () => 'packet rules of another program drop packets',
    text: ({ drop }) => drop,
    remedy: ({ command }) => command,
  }),
  'rules-unread': entry<{ packets: string; error: string; forwards: boolean }>({
    title: 'packet rules of other programs cannot be read',
    // A host that forwards may lose all that it forwards.
    severity: ({ forwards }) => (forwards ? 'problem' : 'note'),
    summary: () => 'packet rules of other programs cannot be read',
    text: ({ packets, error }) => `whether packets ${packets} are dropped is unknown: ${error}`,
    remedy: () => 'sudo cpn doctor',
  }),
};
