import type { ForwardedPackets } from '../../../core/forward/forwarded-packets.ts';
import type { ForwardedRoute } from '../../../core/host-state/actual.ts';
import type { Address, Prefix } from '../../../core/net/cidr.ts';
import { asList, isEntry, type JsonEntry } from './json-entry.ts';
import type { LookupResult } from './route-lookups.ts';

/**
 * Looks up how the kernel routes packets that arrive on `link` (inet_rtm_getroute in
 * net/ipv4/route.c). The link must be up, and forward.
 */
export function renderForwarded(link: string, { source, destinations }: ForwardedPackets): readonly string[] {
  return addressesOf(destinations).map((address) => `route get ${address} from ${source} iif ${link}`);
}

/** Reads the replies to {@link renderForwarded}, one per line. */
export function readForwarded(
  link: string,
  { destinations }: ForwardedPackets,
  answers: readonly LookupResult[],
): Readonly<Record<Prefix, ForwardedRoute>> {
  const verdicts = new Map(
    addressesOf(destinations).map((address, index) => [address, readVerdict(link, answers[index])]),
  );
  const routes = destinations.flatMap(({ route, addresses }): [Prefix, ForwardedRoute][] => {
    const known = addresses.flatMap((address) => verdicts.get(address) ?? []);
    const links = [...new Set(known.flatMap((verdict) => ('leaves' in verdict ? verdict.leaves : [])))];
    const [why = null] = links.length > 0 ? [] : known.flatMap((verdict) => ('why' in verdict ? verdict.why : []));
    return known.length === 0 ? [] : [[route, { links, why }]];
  });
  return Object.fromEntries(routes);
}

function addressesOf(destinations: ForwardedPackets['destinations']): readonly Address[] {
  return [...new Set(destinations.flatMap(({ addresses }) => addresses))];
}

type ForwardVerdict = { readonly leaves: string } | { readonly why: string };

/** Null for one of this host's addresses, or a rejected source: it proves nothing about others. */
function readVerdict(link: string, answer: LookupResult | undefined): ForwardVerdict | null {
  if (answer === undefined) return null;
  if ('refusal' in answer) {
    const [, why] = refusals.find(([text]) => answer.refusal.includes(text)) ?? [];
    return why === undefined ? null : { why };
  }
  const { type, dev } = parseEntry(answer.json);
  if (typeof dev !== 'string' || (type !== undefined && String(type) !== unicast)) return null;
  return dev === link ? { why: `this host routes packets for it back into ${link}` } : { leaves: dev };
}

const unicast = '1';

/** Errors of a lookup, from routes and policy rules (fib_props in net/ipv4/fib_semantics.c). */
const refusals: readonly (readonly [string, string])[] = [
  ['Network is unreachable', 'this host has no route there for packets of the network'],
  ['No route to host', 'a route or a rule of this host makes it unreachable for packets of the network'],
  ['Permission denied', 'a route or a rule of this host prohibits it for packets of the network'],
  ['Invalid argument', 'a route or a rule of this host drops packets of the network there'],
];

function parseEntry(json: string): JsonEntry {
  try {
    return asList(JSON.parse(json)).find(isEntry) ?? {};
  } catch {
    return {};
  }
}
