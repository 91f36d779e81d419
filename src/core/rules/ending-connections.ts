import { InvalidValue } from '../errors/index.ts';
import type { TcpConnection } from '../host-state/actual.ts';
import { type Address, covers, type Prefix } from '../net/cidr.ts';
import { type NamedSelector, parsePorts, parseSelector } from './selector.ts';

/** Connections that a change of rules ends. */
interface LostAccess {
  readonly from: string;
  readonly to: string;
  readonly protocol: string;
  readonly ports: readonly string[];
}

interface ChangedNetwork {
  readonly cidr: Prefix;
  readonly peers: readonly { readonly name: string; readonly address: Address }[];
  readonly lost: readonly LostAccess[];
  /** False if there are more losses than `lost` has: each connection into the network may end. */
  readonly isWhole: boolean;
}

/** Finds the connections into or out of the network's range that the losses end. */
export function findEndingConnections(
  connections: readonly TcpConnection[],
  { cidr, peers, lost, isWhole }: ChangedNetwork,
): TcpConnection[] {
  const names = new Map(peers.map(({ address, name }) => [address, name]));
  const losses = lost.flatMap((each) => parseLoss(each) ?? []);
  const isLost = ({ from, to, port }: TcpConnection) =>
    losses.some(
      (loss) =>
        (loss.ports.length === 0 || loss.ports.some(({ first, last }) => first <= port && port <= last)) &&
        selects(loss.from, from, names) &&
        selects(loss.to, to, names),
    );
  return connections
    .filter(({ from, to }) => covers(cidr, from) || covers(cidr, to))
    .filter((connection) => !isWhole || isLost(connection));
}

/** Null for another protocol, and for a form that a later service may use. */
function parseLoss({ from, to, protocol, ports }: LostAccess) {
  if (protocol !== 'any' && protocol !== 'tcp') return null;
  try {
    return { from: parseSelector(from), to: parseSelector(to), ports: ports.map((text) => parsePorts(text)) };
  } catch (error) {
    if (error instanceof InvalidValue) return null;
    throw error;
  }
}

function selects(selector: NamedSelector, address: Address, names: ReadonlyMap<Address, string>): boolean {
  switch (selector.kind) {
    case 'any':
      return true;
    case 'peer':
      return names.get(address) === selector.name;
    case 'route':
    case 'cidr':
      return !names.has(address) && covers(selector.prefix, address);
    default:
      return false;
  }
}
