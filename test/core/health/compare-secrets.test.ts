import { describe, expect, it } from 'vitest';
import { makeIdentity } from '../../../src/core/crypto/identity.ts';
import { compareSecret, findPeersCutOff, findSecretMismatches } from '../../../src/core/health/compare-secrets.ts';
import type { Peer } from '../../../src/core/map/model.ts';
import { problem, toSentence } from '../../../src/core/problems/problem.ts';
import { keyPair, network, peer } from '../samples.ts';

const mine = '00112233445566ff';
const theirs = 'ffeeddccbbaa9988';
const { key: identity } = makeIdentity(new Uint8Array(32).fill(9));
const tagged = (number: number, secretTag: string): Peer => peer(number, { secretTag });
const known = (number: number): Peer => peer(number, { identity });

/** What a host, number 1, tells of number 2. */
const compare = (tag: string | null, other: Peer, self: Peer = peer(1)) =>
  compareSecret(other, { map: network([self, other]), tag });

const heard = (number: number, rxBytes: number, latestHandshake: number | null = null) => ({
  publicKey: keyPair(number).publicKey,
  rxBytes,
  latestHandshake,
});

/** The sentences about these peers. */
function diagnose(tag: string | null, others: readonly Peer[], observed: ReturnType<typeof heard>[] = []): string[] {
  const view = { map: network([peer(1), ...others]), tag, observed };
  return findSecretMismatches(view, others).map((each) =>
    toSentence(problem('secret-mismatch', { interface: 'cpn0', ...each })),
  );
}

describe('the secret of a peer', () => {
  it('is the same, another, or on one side only, by its tag', () => {
    expect(compare(mine, tagged(2, mine))).toBe('shared');
    expect(compare(mine, tagged(2, theirs))).toBe('different');
    expect(compare(null, tagged(2, theirs))).toBe('missing_here');
    expect(compare(mine, known(2))).toBe('missing_there');
    expect(compare(mine, peer(2), tagged(1, mine))).toBe('missing_there');
  });

  it('is unknown if the service lists no tags, and null if neither side has a secret', () => {
    expect(compare(mine, peer(2))).toBe('unknown');
    expect(compare(null, peer(2))).toBeNull();
    expect(compare(null, known(2))).toBeNull();
  });
});

describe('what keeps a handshake away', () => {
  it('is reported with its remedy, once for all peers of one kind', () => {
    expect(diagnose(null, [tagged(2, mine), tagged(3, mine), peer(4)])).toEqual([
      'peer-2, peer-3 have a network secret and this host has none: no handshake succeeds; on this host, type: cpn set cpn0 --network-secret-file PATH, with the same file',
    ]);
    expect(diagnose(mine, [tagged(2, mine), tagged(3, theirs), known(4)])).toEqual([
      'peer-4 has no network secret and this host has one: no handshake succeeds; on those hosts, type: cpn set --network-secret-file PATH, with the file of this host',
      'peer-3 has another network secret than this host: no handshake succeeds; type on every host: cpn set --network-secret-file PATH, with the same file',
    ]);
    expect(diagnose(mine, [2, 3, 4, 5, 6, 7, 8].map(known))[0]).toMatch(
      /^peer-2, .*, peer-6, 2 more have no network secret/,
    );
  });

  it('is assumed if no tags are listed and a peer begins handshakes that never complete', () => {
    for (const tag of [mine, null]) {
      expect(diagnose(tag, [peer(2), peer(3)], [heard(2, 148), heard(3, 0)])).toEqual([
        expect.stringMatching(/^peer-2 began handshakes, and none was completed: most likely only one side/),
      ]);
      expect(diagnose(tag, [peer(2)], [heard(2, 300, 1_800_000_000)])).toEqual([]);
      expect(diagnose(tag, [peer(2)], [])).toEqual([]);
    }
  });

  it('is not assumed if tags are listed: a lost packet is the likelier cause', () => {
    expect(diagnose(mine, [tagged(2, mine)], [heard(2, 148)])).toEqual([]);
    expect(diagnose(null, [known(2)], [heard(2, 148)])).toEqual([]);
  });
});

describe('a change of the secret', () => {
  const others = [tagged(2, mine), tagged(3, theirs), known(4)];
  const cutOff = (before: string | null, after: string | null, peers: readonly Peer[] = others) =>
    findPeersCutOff(network([peer(1), ...peers]), before, after, peers).map(({ name }) => name);

  it('cuts off the peers that have the secret so far, and not the next one', () => {
    expect(cutOff(null, mine)).toEqual(['peer-4']);
    expect(cutOff(mine, null)).toEqual(['peer-2']);
    expect(cutOff(mine, theirs)).toEqual(['peer-2']);
    expect(cutOff(mine, '00')).toEqual(['peer-2']);
    expect(cutOff('00', mine)).toEqual([]);
    expect(cutOff(mine, mine)).toEqual([]);
  });

  it('may cut off every peer where the service lists no tags', () => {
    expect(cutOff(null, mine, [peer(2), peer(3)])).toEqual(['peer-2', 'peer-3']);
    expect(cutOff(mine, mine, [peer(2), peer(3)])).toEqual([]);
  });
});
