/** The expected state of the hosts on a random day, as far as it decides which hosts reach which. */

export const connectors = ['edge-1', 'edge-2'] as const;
export const members = [...connectors, 'origin', 'laptop'] as const;
export type Connector = (typeof connectors)[number];
export type Member = (typeof members)[number];

/** The LANs behind the connectors, and the server in each. */
export const lans = {
  first: { prefix: '192.168.50.0/24', server: '192.168.50.10' },
  second: { prefix: '192.168.60.0/24', server: '192.168.60.10' },
} as const;
export type Lan = keyof typeof lans;

export interface Model {
  /** The members that have joined and are powered on. */
  readonly present: Set<Member>;
  /** The connectors that are drained. */
  readonly drained: Set<Connector>;
  /** The connectors on which something like docker runs. */
  readonly dockers: Set<Connector>;
  /** The LANs that the network advertises. */
  readonly routed: Set<Lan>;
  /** The members that are in the second network too. */
  readonly elsewhere: Set<Member>;
  /** The members of which a copy ran: status reports it for ten minutes. */
  readonly copied: Set<Member>;
  /** Strangers may have passed a host's packet rules since the hosts were last settled: there were none for a while. */
  isLeakExcused: boolean;
}

export function initialModel(): Model {
  return {
    present: new Set(members),
    drained: new Set(),
    dockers: new Set(),
    routed: new Set(['first']),
    elsewhere: new Set(),
    copied: new Set(),
    isLeakExcused: false,
  };
}

/** True for a name of a connector. */
export function isConnector(name: Member): name is Connector {
  return (connectors as readonly Member[]).includes(name);
}

/** True where another connector serves while this one is away. */
export function isSpare(model: Model, name: Connector): boolean {
  return connectors.some((other) => other !== name && model.present.has(other) && !model.drained.has(other));
}
