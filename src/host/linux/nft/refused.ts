import { InvalidValue } from '../../../core/errors/index.ts';
import { deniedCounters, deniedFor, deniedSet } from '../../../core/forward/access-filter.ts';
import { tableOf } from '../../../core/forward/own-table.ts';
import { parseAddress } from '../../../core/net/cidr.ts';
import type { RefusedConnection, RefusedTraffic } from '../../../core/rules/refused.ts';
import { parseOutput, stderrOf } from '../../process/command-error.ts';
import type { Run } from '../../process/run.ts';
import { asList, isEntry, type JsonEntry } from '../ip/json-entry.ts';
import { readObjects } from './own-table.ts';

/** Null if the rules of a closed network are not loaded. @throws CommandFailed, MissingTool */
export async function readRefused(run: Run, link: string): Promise<RefusedTraffic | null> {
  try {
    return parseOutput('nft', await run('nft', refusedArgs(link)), parseRefused);
  } catch (error) {
    if (stderrOf(error).includes('No such file or directory')) return null;
    throw error;
  }
}

/** With a set in the same run, nft does not read the elements of all other sets. */
function refusedArgs(link: string): string[] {
  const table = ['inet', tableOf(link)];
  return ['--json', 'list', 'counters', 'table', ...table, ';', 'list', 'set', ...table, deniedSet];
}

/** Parses the output for {@link refusedArgs}: a document a line. @throws InvalidValue */
export function parseRefused(text: string): RefusedTraffic {
  const objects = text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .flatMap(readObjects);
  const packets = (name: string) => {
    const counter = objects.find(({ counter: each }) => isEntry(each) && each.name === name)?.counter;
    return readCount(isEntry(counter) ? counter.packets : undefined);
  };
  const set = objects.find(({ set: each }) => isEntry(each) && each.name === deniedSet)?.set;
  if (!isEntry(set)) throw notRefused();
  const latest = asList(set.elem).map(readConnection);
  return {
    packets: { in: packets(deniedCounters.in), out: packets(deniedCounters.out) },
    latest: latest.toSorted((one, other) => one.seconds - other.seconds),
  };
}

function readConnection(given: unknown): RefusedConnection {
  const { val, expires }: JsonEntry = isEntry(given) && isEntry(given.elem) ? given.elem : { val: given };
  const [from, to, protocol, port] = asList(isEntry(val) ? val.concat : null);
  return {
    from: parseAddress(String(from)),
    to: parseAddress(String(to)),
    protocol: readProtocol(protocol),
    port: readCount(port),
    // nft omits `expires` in the last second.
    seconds: Math.max(0, deniedFor - readCount(expires ?? 0)),
  };
}

/** Without /etc/protocols, nft prints the number of a protocol. */
function readProtocol(value: unknown): RefusedConnection['protocol'] {
  if (value === 'tcp' || value === 6) return 'tcp';
  if (value === 'udp' || value === 17) return 'udp';
  throw notRefused();
}

function readCount(value: unknown): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw notRefused();
}

function notRefused(): InvalidValue {
  return new InvalidValue('it', undefined, 'has no counters and connections of refused packets');
}
