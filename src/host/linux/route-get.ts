import { type Address, familyOf, maskPrefix } from '../../core/cidr.ts';
import type { KernelRoute, RefusedRoute } from '../../core/kernel-route.ts';
import { readAddress, readPrefix } from '../read-address.ts';
import { type Run, saidBy } from '../run.ts';
import { type Entry, isEntry, listOf, nameProtocol, nameTable, notShown } from './shown-entry.ts';

/** Numbers instead of names, because a host may have named any table or protocol; details, among which is the type. */
const getArgs = ['-json', '-details', '-Numeric', '-batch', '-'];

/** {@link Host.route}, in one process: where the packet goes (`route get`), and the route that matched (`fibmatch`). */
export async function getRoute(run: Run, destination: Address, source: Address | null): Promise<KernelRoute> {
  const question = source === null ? destination : `${destination} from ${source}`;
  try {
    return parseGot(await run('ip', getArgs, { input: `route get ${question}\nroute get fibmatch ${question}\n` }));
  } catch (error) {
    const [, why] = refusals.find(([words]) => saidBy(error).includes(words)) ?? [];
    if (why === undefined) throw error;
    return { link: null, why };
  }
}

/** Parses the two lines, each a JSON array with one object (iproute_get in ip/iproute.c of iproute2). */
export function parseGot(text: string): KernelRoute {
  const [way, match] = text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map(parseOne);
  if (way === undefined || match === undefined) throw notShown('has not two lines');
  const { type, dev, dst } = way;
  const destination = typeof dst === 'string' ? readAddress(dst) : null;
  if (typeof dev !== 'string' || destination === null) throw notShown('names no link for a route');
  return {
    link: dev,
    local: type === localType,
    source: typeof way.prefsrc === 'string' ? readAddress(way.prefsrc) : null,
    gateway: readGateway(way),
    table: nameTable(way.table ?? 'main'),
    prefix:
      match.dst === 'default'
        ? maskPrefix(familyOf(destination) === 4 ? '0.0.0.0/0' : '::/0')
        : readPrefix(`${match.dst}`),
    protocol: nameProtocol(match.protocol ?? 'boot'),
  };
}

/** RTN_LOCAL of the kernel's rtnetlink.h. */
const localType = '2';

/** What the kernel answers, by its error (ip_route_output_key and fib_props in net/ipv4/fib_semantics.c). */
const refusals: readonly (readonly [string, RefusedRoute['why']])[] = [
  ['Network is unreachable', 'none'],
  ['No route to host', 'unreachable'],
  ['Permission denied', 'prohibit'],
  ['Invalid argument', 'blackhole'],
];

/** An IPv4 route may go by an IPv6 gateway, which is then printed as `via`. */
function readGateway({ gateway, via }: Entry): Address | null {
  const text = gateway ?? (isEntry(via) ? via.host : undefined);
  return typeof text === 'string' ? readAddress(text) : null;
}

function parseOne(line: string): Entry | undefined {
  try {
    return listOf(JSON.parse(line)).find(isEntry);
  } catch {
    throw notShown('is not a list in JSON');
  }
}
