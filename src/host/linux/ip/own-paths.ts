import type { Address } from '../../../core/net/cidr.ts';
import { asList, isEntry, type JsonEntry, readGateway } from './json-entry.ts';
import type { LookupResult } from './route-lookups.ts';

/** Looks up the path of packets from this host to each address, by all policy rules and tables. */
export function renderPaths(addresses: readonly Address[]): readonly string[] {
  return addresses.map((address) => `route get ${address}`);
}

/** Reads the replies to {@link renderPaths}, one per address, as `interface gateway source`. */
export function readPaths(
  addresses: readonly Address[],
  answers: readonly LookupResult[],
): Readonly<Record<Address, string>> {
  return Object.fromEntries(
    addresses.flatMap((address, index) => {
      const answer = answers[index];
      return answer === undefined ? [] : [[address, describe(answer)]];
    }),
  );
}

function describe(answer: LookupResult): string {
  if ('refusal' in answer) return answer.refusal;
  const [entry = {}] = parse(answer.json);
  return [entry.dev, readGateway(entry) ?? '-', entry.prefsrc ?? '-'].join(' ');
}

function parse(json: string): readonly JsonEntry[] {
  try {
    return asList(JSON.parse(json)).filter(isEntry);
  } catch {
    return [];
  }
}
