import { printable } from '../errors/index.ts';

/** A warning that another host may have the same identity, and the remedy. */
export interface CloneWarning {
  readonly found: string;
  readonly remedy: string;
}

/**
 * Warns that another host has the identity of this one.
 *
 * @param since ISO 8601
 */
export function describeOwnClone(link: string, since: string): CloneWarning {
  return {
    found: `another host has the identity of ${link} since ${since}, from a copied disk, image or folder: each takes the packets of the other`,
    remedy: `on the host that is the copy type "cpn leave ${link} --keep-peer", and join it with a new key`,
  };
}

/** Warns that the packets of a peer alternate between two endpoints. */
export function describeAlternating(name: string, endpoints: readonly string[]): CloneWarning {
  return {
    found: `packets of ${printable(name)} come from ${endpoints.join(' and ')} in turn: two hosts may have its identity, from a copied disk, image or folder`,
    remedy:
      'if it is not one host with two uplinks, type "cpn leave --keep-peer" on the copy, and join it with a new key',
  };
}
