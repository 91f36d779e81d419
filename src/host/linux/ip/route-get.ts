import type { KernelRoute, RefusedRoute } from '../../../core/host-state/kernel-route.ts';
import { type Address, familyOf, maskPrefix } from '../../../core/net/cidr.ts';
import type { PacketOrigin } from '../../host.ts';
import { parseOutput, stderrOf } from '../../process/command-error.ts';
import type { Run } from '../../process/run.ts';
import { readAddress, readPrefix } from '../../read-address.ts';
import {
  asList,
  invalidIpOutput,
  isEntry,
  type JsonEntry,
  protocolName,
  readGateway,
  tableName,
} from './json-entry.ts';

/** Numbers, because a host may rename tables and protocols. Details include the type. */
const getArgs = ['-json', '-details', '-Numeric', '-batch', '-'];

/** {@link Host.route}, in one process: `route get` is the path, `fibmatch` the matching route. */
export async function getRoute(run: Run, destination: Address, packet: PacketOrigin = {}): Promise<KernelRoute> {
  const { source, mark } = packet;
  const from = source === undefined ? '' : ` from ${source}`;
  const query = `${destination}${from}${mark === undefined ? '' : ` mark ${mark}`}`;
  try {
    const input = `route get ${query}\nroute get fibmatch ${query}\n`;
    return parseOutput('ip', await run('ip', getArgs, { input }), parseRouteGet);
  } catch (error) {
    const [, why] = refusals.find(([text]) => stderrOf(error).includes(text)) ?? [];
    if (why === undefined) throw error;
    return { link: null, why };
  }
}

/** Parses two lines, each a JSON array of one object (iproute_get in ip/iproute.c of iproute2). */
export function parseRouteGet(text: string): KernelRoute {
  const [path, match] = text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map(parseLine);
  if (path === undefined || match === undefined) throw invalidIpOutput('has not two lines');
  const { type, dev, dst } = path;
  const destination = typeof dst === 'string' ? readAddress(dst) : null;
  if (typeof dev !== 'string' || destination === null) throw invalidIpOutput('names no link for a route');
  return {
    link: dev,
    local: type === localType,
    source: typeof path.prefsrc === 'string' ? readAddress(path.prefsrc) : null,
    gateway: readGateway(path),
    table: tableName(path.table ?? 'main'),
    prefix:
      match.dst === 'default'
        ? maskPrefix(familyOf(destination) === 4 ? '0.0.0.0/0' : '::/0')
        : readPrefix(`${match.dst}`),
    protocol: protocolName(match.protocol ?? 'boot'),
  };
}

/** RTN_LOCAL of the kernel's rtnetlink.h. */
const localType = '2';

/** The errors of a lookup (ip_route_output_key and fib_props in net/ipv4/fib_semantics.c). */
const refusals: readonly (readonly [string, RefusedRoute['why']])[] = [
  ['Network is unreachable', 'none'],
  ['No route to host', 'unreachable'],
  ['Permission denied', 'prohibit'],
  ['Invalid argument', 'blackhole'],
];

function parseLine(line: string): JsonEntry | undefined {
  try {
    return asList(JSON.parse(line)).find(isEntry);
  } catch {
    throw invalidIpOutput('is not a list in JSON');
  }
}
