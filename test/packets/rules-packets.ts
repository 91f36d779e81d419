import fc from 'fast-check';
import type { Address } from '../../src/core/net/cidr.ts';
import { publishedPort, renderReplacement } from './gateway.ts';
import type { Attempt } from './gateway-cases.ts';
import { attemptsOf, gatewayPairs } from './gateway-cases.ts';
import { buildPacket, isError, readPacket } from './packet.ts';
import type { OnDevice, Wire } from './wire.ts';

/** How many packets of each kind arrived, and how many did not. */
export type Counted = ReadonlyMap<string, { readonly arrived: number; readonly refused: number }>;

/**
 * Loads the packet filter of generated networks, and sends packets to, from and through the gateway. What arrives must be what the rules
 * allow, and nothing else.
 *
 * @throws Error with the smallest network and packet for which it is not
 */
export async function comparePackets(wire: Wire, networks: number, packets: number, seed?: number): Promise<Counted> {
  const counted = new Map<string, { arrived: number; refused: number }>();
  const cases = gatewayPairs.chain(({ before, gateway }) =>
    fc.record({ before: fc.constant(before), gateway: fc.constant(gateway), attempts: attemptsOf(gateway, packets) }),
  );
  await fc.assert(
    fc.asyncProperty(cases, async ({ gateway, before, attempts }) => {
      const found = await send(wire, renderReplacement(gateway, before), withoutAnswers(attempts));
      for (const { attempt, arrived } of found) {
        const { arrived: before = 0, refused = 0 } = counted.get(attempt.why) ?? {};
        const isHere = arrived.length > 0;
        counted.set(attempt.why, { arrived: before + (isHere ? 1 : 0), refused: refused + (isHere ? 0 : 1) });
        const isRight = attempt.isAllowed
          ? arrived.some(({ from, device }) => device === attempt.to && [from, null].includes(attempt.arrivesFrom))
          : arrived.length === 0;
        if (!isRight) throw new Error(describe(attempt, arrived));
      }
    }),
    { numRuns: networks, ...(seed !== undefined && { seed }) },
  );
  return counted;
}

/**
 * Leaves out packets that answer an earlier one: they belong to its connection. Of a protocol without ports, a host that masquerades can
 * have only one connection to each address.
 */
function withoutAnswers(attempts: readonly Attempt[]): readonly Attempt[] {
  const begun = new Set<string>();
  return attempts.filter(({ flow: { from, to, protocol, port }, packet: { sourcePort }, to: device }) => {
    const hasPorts = protocol === 'tcp' || protocol === 'udp';
    // A container answers by the port that the published one leads to.
    const ports = device === 'docker0' && port === publishedPort.outside ? [port, publishedPort.inside] : [port];
    const here = hasPorts ? `${from} ${sourcePort}` : from;
    const theres = hasPorts ? ports.map((each) => `${to} ${each}`) : [to];
    const isUsed = protocol === 'other' && begun.has(`${protocol} ${to}`);
    if (isUsed || theres.some((there) => begun.has(`${protocol} ${there} ${here}`))) return false;
    for (const each of [...theres.map((there) => `${protocol} ${here} ${there}`), `${protocol} ${to}`]) begun.add(each);
    return true;
  });
}

interface ArrivedAt {
  readonly device: string;
  readonly from: Address;
}

/** Loads the filter, and sends every packet as the first of its connection, and once more. */
async function send(wire: Wire, parts: readonly string[], attempts: readonly Attempt[]) {
  const sent = ['first', 'second'].flatMap((turn) =>
    attempts.map(({ packet, from }, index): OnDevice => {
      return { device: from, bytes: buildPacket({ ...packet, payload: Buffer.from(`<${turn} ${index}>`) }) };
    }),
  );
  for (const nft of parts) await wire.exchange({ nft });
  const got = await wire.exchange({ flush: true, send: sent });
  const arrivals = new Map<string, ArrivedAt[]>();
  for (const { device, bytes } of got) {
    const mark = /<(?:first|second) \d+>/.exec(bytes.toString('latin1'))?.[0];
    if (mark === undefined) continue;
    const read = readPacket(bytes);
    if (!isError(read)) arrivals.set(mark, [...(arrivals.get(mark) ?? []), { device, from: read.from }]);
  }
  return ['first', 'second'].flatMap((turn) =>
    attempts.map((attempt, index) => {
      // An echo reply of the gateway has the same payload.
      const all = arrivals.get(`<${turn} ${index}>`) ?? [];
      const isAnswer = ({ device }: ArrivedAt) => attempt.to === 'host' && device === attempt.from;
      return {
        attempt,
        arrived: all.some(({ device }) => device === 'host') ? all.filter((each) => !isAnswer(each)) : all,
      };
    }),
  );
}

function describe({ packet, from, to, isAllowed, arrivesFrom, why }: Attempt, arrived: readonly ArrivedAt[]): string {
  const what = `${packet.protocol}${packet.isEcho ? ' echo' : ''} ${packet.from} port ${packet.sourcePort} to ${packet.to} port ${packet.port}`;
  const wanted = isAllowed ? `must arrive at ${to} from ${arrivesFrom}` : 'must not arrive';
  const found = arrived.map(({ device, from: source }) => `at ${device} from ${source}`).join(', ') || 'nowhere';
  return `${why}: ${what}, by ${from}, ${wanted}; it arrived ${found}`;
}
