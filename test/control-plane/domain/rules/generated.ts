import fc from 'fast-check';
import type { AccessRule } from '../../../../src/contract/rules.ts';
import { parseRules } from '../../../../src/control-plane/domain/rules/decide.ts';
import type { Endpoint, RuledNetwork, RuledPeer } from '../../../../src/control-plane/domain/rules/endpoints.ts';
import type { RuleSet } from '../../../../src/control-plane/domain/rules/rule-set.ts';
import type { Flow } from '../../../../src/core/map/access-rules.ts';
import type { Address } from '../../../../src/core/net/cidr.ts';
import { addressAt, addressOf, covers, parsePrefix, rangeOf } from '../../../../src/core/net/cidr.ts';
import { type Decision, evaluate, type RuledNetwork as MapWithRules } from '../../../../src/core/rules/evaluate.ts';

const routes = ['192.168.0.0/28', '192.168.0.4/30', '192.168.1.0/30'].map((text) => parsePrefix(text));
const tags = ['web', 'db', 'ops'];

export function makePeer(id: number, fields: Partial<RuledPeer> = {}): RuledPeer {
  return {
    ...{ id, name: `host-${id}`, address: `10.77.0.${id}`, tags: [], enforcesRules: true, followsRelay: true },
    ...{ hasEndpoint: true, isConnector: false, served: [], profile: null, ...fields },
  };
}

const peers = fc
  .array(fc.record({ tags: fc.subarray(tags), enforcesRules: fc.boolean() }), { minLength: 1, maxLength: 5 })
  .map((all) => all.map((fields, index) => makePeer(index + 1, fields)));

export const networks: fc.Arbitrary<RuledNetwork> = peers.map((all) => ({ routes, peers: all }));

/** Peers of which some are not in the network, routes, parts of them, and wider prefixes. */
export const selectors = fc.constantFrom(
  ...['any', 'peer:1', 'peer:2', 'peer:3', 'peer:9', ...tags.map((tag) => `tag:${tag}`)],
  ...['route:192.168.0.0/28', 'route:192.168.0.4/30', 'route:192.168.0.0/16', 'route:172.16.0.0/12'],
  ...['cidr:192.168.0.4/31', 'cidr:192.168.0.8/32', 'cidr:192.168.1.0/31', 'cidr:192.168.1.2/31'],
);

const ranges = fc.constantFrom('1', '9', '22', '443', '20-25', '400-500', '1-65535', '26-399', '65535');
const sides = fc.array(selectors, { minLength: 1, maxLength: 3 });

const rules: fc.Arbitrary<AccessRule> = fc
  .record({
    ...{ from: sides, to: sides, protocol: fc.constantFrom('any', 'tcp', 'udp', 'icmp') },
    ports: fc.array(ranges, { maxLength: 3 }),
  })
  .map(({ ports, ...rule }) => ({
    ...{ ...rule, name: '' },
    ports: rule.protocol === 'tcp' || rule.protocol === 'udp' ? ports : [],
  }));

export const ruleSets: fc.Arbitrary<RuleSet> = fc
  .record({
    mode: fc.constantFrom('closed', 'closed', 'open'),
    rules: fc.array(rules, { maxLength: 5 }),
    require_enforcement: fc.boolean(),
  })
  .map((set) => ({ ...set, tests: [], rules: set.rules.map((rule, index) => ({ ...rule, name: `rule ${index}` })) }));

/** A network with these rules, as a host has it. */
export function toMap({ peers }: RuledNetwork, set: RuleSet): MapWithRules {
  const { mode, rules, requiresEnforcement } = parseRules(set);
  return {
    cidr: parsePrefix('10.77.0.0/24'),
    peers: peers.map((peer) => ({ ...peer, ...(peer.enforcesRules ? {} : { enforcesRules: undefined }) })),
    ...(mode === 'closed' && { rules: { rules, requiresEnforcement } }),
  } as unknown as MapWithRules;
}

/** An address of an end that no other of these ends has. */
export function addressOfEnd({ peer, prefix }: Endpoint, ends: readonly Endpoint[]): Address {
  if (peer !== null) return peer.address as Address;
  if (prefix === null) throw new Error('an end is a peer or a prefix');
  const narrower = ends.flatMap((end) =>
    end.prefix && end.prefix !== prefix && covers(prefix, end.prefix) ? end.prefix : [],
  );
  const { first, last } = rangeOf(prefix);
  for (let number = first; number <= last; number += 1n) {
    const address = addressAt(number);
    if (!narrower.some((each) => covers(each, address))) return address;
  }
  throw new Error(`${addressOf(prefix)} has no address of its own`);
}

/** Like the evaluator, but as if hosts filtered their probes too. */
export function evaluateRules(map: MapWithRules, flow: Flow): Decision {
  return evaluate({ ...map, cidr: parsePrefix('10.78.0.0/24') }, flow);
}
