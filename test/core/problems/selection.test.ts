import { describe, expect, it } from 'vitest';
import {
  catalogue,
  type FactsOf,
  type ProblemCode,
  problem,
  selectProblems,
} from '../../../src/core/problems/problem.ts';
import { samples } from './samples.ts';

const codes = Object.keys(catalogue) as ProblemCode[];
const all = codes.map((code) => problem(code, samples[code] as FactsOf<typeof code>));
/** The codes that are left out of all problems at once, without these. */
const leftOut = (...absent: ProblemCode[]) => {
  const found = all.filter(({ code }) => !absent.includes(code));
  const kept = new Set(selectProblems(found).map(({ code }) => code));
  return found
    .map(({ code }) => code)
    .filter((code) => !kept.has(code))
    .toSorted();
};

const ofInterface = [
  ...[
    'connector-alone',
    'domain-failing',
    'domain-silent',
    'drift',
    'endpoint-unused',
    'interface-missing',
    'key-held',
    'lan-silent',
    'lan-unreachable',
  ],
  ...[
    'map-unused',
    'names-port-taken',
    'peer-hidden',
    'peer-relayed',
    'peer-silent',
    'port-mismatch',
    'probe-untried',
    'route-bypassed',
  ],
  ...['route-foreign', 'route-missing', 'secret-mismatch', 'session-kept', 'subnet-inside', 'tunnel-bypassed'],
];

describe('of all problems at once are left out', () => {
  it('all others where the network was deleted, but for what is left of it', () => {
    expect(leftOut()).toEqual(
      codes.filter((code) => !['network-deleted', 'config-left', 'dns-file-left'].includes(code)).toSorted(),
    );
  });

  it('those of the interface where it was taken down', () => {
    expect(leftOut('network-deleted')).toEqual(ofInterface);
  });

  it('those that a host that cannot be read does not show', () => {
    expect(leftOut('network-deleted', 'taken-down')).toEqual(['drift', 'interface-missing', 'port-mismatch']);
  });

  it('drift where there is no interface, and else none', () => {
    expect(leftOut('network-deleted', 'taken-down', 'host-unread')).toEqual(['drift']);
    expect(leftOut('network-deleted', 'taken-down', 'host-unread', 'interface-missing')).toEqual([]);
  });
});
