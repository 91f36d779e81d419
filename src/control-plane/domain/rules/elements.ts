import { type AccessRule, mostElements } from '../../../contract/rules.ts';
import { quote } from '../../../core/errors/index.ts';
import type { Selector } from '../../../core/map/access-rules.ts';
import { overlaps } from '../../../core/net/cidr.ts';
import { parseMapSelector } from '../../../core/rules/map-selector.ts';
import { InvalidRequest } from '../../errors.ts';
import type { RuledPeer } from './endpoints.ts';
import { pushTo } from './groups.ts';

/** A host that needs too many elements of packet filters, from a rule on. */
interface Excess {
  /** The place of the rule. */
  readonly place: number;
  readonly problem: string;
}

/** @throws InvalidRequest that names the rule with which a host has too many elements */
export function checkElements(rules: readonly AccessRule[], peers: readonly RuledPeer[]): void {
  const excess = findExcess(rules, peers);
  if (excess === null) return;
  const remedy = 'use fewer ports, or routes in place of their parts';
  throw new InvalidRequest({ [`rules.${excess.place}`]: [`${excess.problem}; ${remedy}`] });
}

/**
 * Finds rules that need too many elements of packet filters on one host. A rule needs on a host
 * senders × ports for each of its destinations there, and destinations × ports for each of its
 * senders there. A peer, a route, a part of a route and `any` are one element each. On a connector
 * are also the routes that it serves.
 */
export function findExcess(rules: readonly AccessRule[], peers: readonly RuledPeer[]): Excess | null {
  const hosts = new Hosts(peers);
  for (const [place, { name, from, to, ports }] of rules.entries()) {
    const [senders, receivers] = [from.map(parseMapSelector), to.map(parseMapSelector)];
    const factor = Math.max(1, ports.length);
    hosts.add(receivers, hosts.count(senders) * factor);
    hosts.add(senders, hosts.count(receivers) * factor);
    const most = hosts.most();
    if (most.elements > mostElements) {
      const problem = `${quote(name)} brings ${most.host} to ${most.elements} elements; a host has at most ${mostElements}`;
      return { place, problem };
    }
  }
  return null;
}

class Hosts {
  readonly #peers: readonly RuledPeer[];
  readonly #places: ReadonlyMap<number, number>;
  readonly #tagged = new Map<string, number[]>();
  readonly #connectors: readonly number[];
  readonly #elements: Float64Array;
  /** The elements of every host. */
  #ofAll = 0;
  #largest = 0;

  constructor(peers: readonly RuledPeer[]) {
    this.#peers = peers;
    this.#places = new Map(peers.map(({ id }, place) => [id, place]));
    this.#elements = new Float64Array(peers.length);
    for (const [place, { tags }] of peers.entries()) for (const tag of tags) pushTo(this.#tagged, tag, place);
    this.#connectors = [...peers.keys()].filter((place) => (peers[place]?.served.length ?? 0) > 0);
  }

  count(selectors: readonly Selector[]): number {
    return selectors.reduce((sum, selector) => {
      if (selector.kind === 'tag') return sum + (this.#tagged.get(selector.tag)?.length ?? 0);
      return sum + (selector.kind === 'peer' ? this.#select(selector).length : 1);
    }, 0);
  }

  /** Adds elements for each of these selectors that concerns a host. */
  add(selectors: readonly Selector[], elements: number): void {
    for (const selector of selectors) {
      if (selector.kind === 'any') this.#ofAll += elements;
      for (const place of this.#select(selector)) {
        const sum = (this.#elements[place] ?? 0) + elements;
        this.#elements[place] = sum;
        if (sum > (this.#elements[this.#largest] ?? 0)) this.#largest = place;
      }
    }
  }

  most(): { readonly host: string; readonly elements: number } {
    const elements = (this.#elements[this.#largest] ?? 0) + this.#ofAll;
    return { host: this.#peers[this.#largest]?.name ?? 'a host', elements };
  }

  #select(selector: Selector): readonly number[] {
    switch (selector.kind) {
      case 'peer': {
        const place = this.#places.get(Number(selector.id));
        return place === undefined ? [] : [place];
      }
      case 'tag':
        return this.#tagged.get(selector.tag) ?? [];
      case 'route':
      case 'cidr':
        return this.#connectors.filter((place) =>
          this.#peers[place]?.served.some((route) => overlaps(route, selector.prefix)),
        );
      default:
        return [];
    }
  }
}
