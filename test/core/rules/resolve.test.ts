import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Flow, Rule } from '../../../src/core/map/access-rules.ts';
import type { Peer } from '../../../src/core/map/model.ts';
import { type Address, addressAt, covers, hostPrefix, type Prefix, rangeOf } from '../../../src/core/net/cidr.ts';
import type { NumberRange } from '../../../src/core/net/number-ranges.ts';
import { evaluate, probedPort } from '../../../src/core/rules/evaluate.ts';
import { type Access, type Admitted, type LocalEnd, resolveAccess } from '../../../src/core/rules/resolve.ts';
import { network, peer, prefix } from '../samples.ts';
import { closedNetworks, flowsOf } from './generated-rules.ts';

const has = ({ first, last }: NumberRange, address: Address) => {
  const { first: number } = rangeOf(hostPrefix(address));
  return first <= number && number <= last;
};

function admits({ everything, tcp, udp, icmp }: Admitted, { protocol, port }: Flow): boolean {
  if (everything || protocol === 'other') return everything;
  if (protocol === 'icmp') return icmp;
  return { tcp, udp }[protocol].some(({ first, last }) => port !== null && first <= port && port <= last);
}

function admitsFrom({ peers, ranges, others, refused }: Access, address: Address, flow: Flow): boolean {
  const special = [...peers, ...ranges].find(({ range }) => has(range, address));
  return !refused.includes(address) && admits(special?.admitted ?? others, flow);
}

const isProbe = ({ protocol, port, isEcho }: Flow) => isEcho === true || (protocol === 'tcp' && port === probedPort);

/** What the ends of a host decide on a flow to it, or from it; null if it is neither. */
function decide(ends: readonly LocalEnd[], flow: Flow, range: Prefix, isInward: boolean): boolean | null {
  const [local, remote] = isInward ? [flow.to, flow.from] : [flow.from, flow.to];
  const found = ends.filter(({ ranges }) => ranges.some((each) => has(each, local)));
  if (found.length > 1) throw new Error(`${local} is in ${found.length} ends`);
  const [end] = found;
  if (end === undefined) return null;
  if (end === ends[0] && isProbe(flow) && covers(range, remote)) return true;
  for (let at: LocalEnd | undefined = end; at !== undefined; at = at.wider === undefined ? at.wider : ends[at.wider]) {
    if (admitsFrom(isInward ? at.inward : at.outward, remote, flow)) return true;
  }
  return false;
}

/** Every host, with the routes that it may serve. */
const cases = closedNetworks.chain((map) =>
  fc.record({
    map: fc.constant(map),
    self: fc.constantFrom<Peer>(...map.peers),
    served: fc.subarray([...map.routes]),
    flows: fc.array(flowsOf(map), { minLength: 30, maxLength: 30 }),
  }),
);

it('each host allows exactly what the rules allow, of connections to it and from it', () => {
  let judged = 0;
  let allowed = 0;
  fc.assert(
    fc.property(cases, ({ map, self, served, flows }) => {
      const ends = resolveAccess(map, self, served);
      const own = self.address;
      for (const flow of flows.flatMap((each) => [each, { ...each, to: own }, { ...each, from: own }])) {
        for (const isInward of [true, false]) {
          const decided = decide(ends, flow, map.cidr, isInward);
          // A LAN reaches its own connector without the tunnel.
          if (decided === null || (isInward ? flow.from : flow.to) === own) continue;
          const isAllowed = evaluate(map, flow).allowed;
          judged += 1;
          if (isAllowed) allowed += 1;
          if (decided !== isAllowed)
            expect({ flow, isInward, decided }).toEqual({ flow, isInward, decided: isAllowed });
        }
      }
    }),
    { numRuns: 500 },
  );
  expect(judged).toBeGreaterThan(15_000);
  expect(allowed / judged).toBeGreaterThan(0.1);
  expect(allowed / judged).toBeLessThan(0.9);
});

it('each address that a host stands for is in exactly one end', () => {
  fc.assert(
    fc.property(cases, ({ map, self, served, flows }) => {
      const ends = resolveAccess(map, self, served);
      for (const address of flows.flatMap(({ from, to }) => [from, to])) {
        const isServed = served.some((route) => covers(route, address)) && !covers(map.cidr, address);
        const found = ends.filter(({ ranges }) => ranges.some((range) => has(range, address)));
        if (found.length !== (isServed || address === self.address ? 1 : 0))
          expect({ address, ends: found.length }).toEqual({ address, isServed });
      }
    }),
    { numRuns: 200 },
  );
});

it('rules beyond all bounds allow nothing', () => {
  const peers = Array.from({ length: 250 }, (_, at) => peer(at + 1, { tags: ['all'] }));
  const rule = { from: [{ kind: 'tag', tag: 'all' }], to: [{ kind: 'any' }], protocol: 'tcp', ports: [] } as const;
  const closed = (count: number) => {
    const rules = Array.from({ length: count }, (_, at) => ({ ...rule, name: `${at}` }));
    return { ...network(peers), rules: { rules, requiresEnforcement: false } };
  };
  const [self] = peers as [Peer];
  expect(resolveAccess(closed(4000), self, [])[0]?.inward.peers).toHaveLength(249);
  expect(resolveAccess(closed(4200), self, [])[0]?.inward).toMatchObject({ peers: [], ranges: [] });
});

const [server, laptop] = [peer(1, { type: 'connector' }), peer(2)];
const tcp = (port: number) => ({ protocol: 'tcp', ports: [{ first: port, last: port }] }) as const;
const toPart = (text: string, port: number) => ({
  ...{ name: text, from: [{ kind: 'peer', id: 2 }], to: [{ kind: 'cidr', prefix: prefix(text) }], ...tcp(port) },
});

it('what a route allows is not repeated for each of its parts', () => {
  const laptops = Array.from({ length: 200 }, (_, at) => peer(at + 2, { tags: ['laptop'] }));
  const wide = { name: 'wide', from: [{ kind: 'tag', tag: 'laptop' }], to: [{ kind: 'any' }], ...tcp(443) } as const;
  const parts = Array.from({ length: 100 }, (_, at) => toPart(`10.1.0.${at}/32`, 1000 + at));
  const rules = { rules: [wide, ...parts] as Rule[], requiresEnforcement: false };
  const ends = resolveAccess({ ...network([server, ...laptops]), rules }, server, [prefix('10.0.0.0/8')]);
  const sizes = ends.map(({ inward }) => inward.peers.length);
  // The connector's own address, the route and its parts.
  expect(sizes).toEqual([200, 200, ...parts.map(() => 1)]);
});

it('deeply nested parts of a route allow what each of them names, within the jumps that the kernel follows', () => {
  const lengths = Array.from({ length: 24 }, (_, at) => at + 9);
  const rules = lengths.map((length) => toPart(`10.0.0.0/${length}`, length)) as Rule[];
  const map = { ...network([server, laptop]), rules: { rules, requiresEnforcement: false } };
  const ends = resolveAccess(map, server, [prefix('10.0.0.0/8')]);
  for (const length of lengths) {
    const to = addressAt(2n ** BigInt(32 - length) + rangeOf(prefix('10.0.0.0/8')).first);
    const allowed = lengths.filter((port) =>
      decide(ends, { from: laptop.address, to, protocol: 'tcp', port }, map.cidr, true),
    );
    expect(allowed).toEqual(lengths.filter((each) => each < length));
  }
  const depthOf = ({ wider }: LocalEnd): number => (wider === undefined ? 1 : 1 + depthOf(ends[wider] as LocalEnd));
  expect(Math.max(...ends.map(depthOf))).toBe(8);
});
