import type { SecretMismatch } from '../health/compare-secrets.ts';
import type { PeerId } from '../map/model.ts';
import type { PinRule } from '../map/options.ts';
import { describeMoreSkipped, describeSkipped } from '../map/skipped-peers.ts';
import { acceptCommand } from '../pins/pin-mismatch.ts';
import { listNames } from '../util/list-names.ts';
import { entry } from './entry.ts';

const noHandshake = 'no handshake succeeds';
/** Names that a line can hold. */
const mostNames = 5;

interface SecretWords {
  text(names: string, have: string): string;
  remedy(link: string): string;
}
const command = 'cpn set --network-secret-file PATH';
const secrets = {
  missing_here: {
    text: (names, have) => `${names} ${have} a network secret and this host has none: ${noHandshake}`,
    remedy: (link) => `on this host, type: cpn set ${link} --network-secret-file PATH, with the same file`,
  },
  missing_there: {
    text: (names, have) => `${names} ${have} no network secret and this host has one: ${noHandshake}`,
    remedy: () => `on those hosts, type: ${command}, with the file of this host`,
  },
  different: {
    text: (names, have) => `${names} ${have} another network secret than this host: ${noHandshake}`,
    remedy: () => `type on every host: ${command}, with the same file`,
  },
  unanswered: {
    text: (names) =>
      `${names} began handshakes, and none was completed: most likely only one side has a network secret, or the secrets differ`,
    remedy: () => `type on every host: ${command}, with the same file; or type "none" in place of PATH`,
  },
} satisfies Record<SecretMismatch['difference'], SecretWords>;

/** Problems of peers, as this host sees them. */
export const peerEntries = {
  'pin-mismatch': entry<{
    peer: PeerId;
    name: string;
    address: string;
    known_key: string;
    claimed_key: string;
    difference: string;
    pin: PinRule;
  }>({
    title: 'a peer changed without a signed proof',
    severity: 'problem',
    summary: ({ name }) => `${name} changed without a signed proof`,
    text: ({ name, address, difference, pin }) =>
      `${name} (${address}) changed without a signed proof: ${difference}; ${
        pin === 'strict' ? 'keeping the pinned values' : 'using the new values'
      }`,
    remedy: ({ interface: link, address }) => `verify the change, then type "${acceptCommand(address, link)}"`,
  }),
  'secret-mismatch': entry<{ difference: SecretMismatch['difference']; peers: readonly string[] }>({
    title: 'network secrets differ',
    severity: 'problem',
    summary: () => 'network secrets differ',
    text: ({ difference, peers }) => {
      const rest = peers.length > mostNames ? [`${peers.length - mostNames} more`] : [];
      const names = [...peers.slice(0, mostNames), ...rest].join(', ');
      return secrets[difference].text(names, peers.length === 1 ? 'has' : 'have');
    },
    remedy: ({ interface: link, difference }) => secrets[difference].remedy(link),
  }),
  'peer-hidden': entry<{ peer: string; address: string; other: string }>({
    title: 'this host has the address of a peer',
    severity: 'problem',
    summary: ({ peer }) => `${peer} is unreachable`,
    text: ({ peer, address, other }) =>
      `${peer} is unreachable: its address ${address} is assigned to this host, on ${other}`,
    remedy: ({ interface: link, other }) =>
      `cpn leave ${link} or cpn leave ${other}, and join again for another address`,
  }),
  'peer-silent': entry<{ peer: string; address: string }>({
    title: 'a peer does not answer',
    severity: 'problem',
    text: ({ peer }) => `${peer} does not answer`,
    remedy: ({ address }) => `cpn explain ${address}`,
    isWarning: false,
  }),
  'peer-relayed': entry<{ peer: string; via: string }>({
    title: 'a peer that does not answer is relayed',
    severity: 'note',
    text: ({ peer, via }) => `${peer} does not answer here; its packets go through ${via}`,
  }),
  'connector-alone': entry<{ connector: string; peers: readonly string[] }>({
    title: 'the only connector of a peer does not answer',
    severity: 'note',
    text: ({ connector, peers }) =>
      `${connector} does not answer here, and is the only connector of ${listNames(peers)}`,
    remedy: () => 'export a new profile through another connector for each of them',
  }),
  'peer-alternating': entry<{ peer: string; endpoints: readonly string[] }>({
    title: 'packets of a peer come from two endpoints alternately',
    severity: 'note',
    text: ({ peer, endpoints }) =>
      `packets of ${peer} come from ${endpoints.join(' and ')} alternately: two hosts may use its identity, from a copied disk, image or folder`,
    remedy: () =>
      'if it is not one host with two uplinks, type "cpn leave --keep-peer" on the copy, and join it with a new key',
  }),
  'peer-skipped': entry<{ peer: PeerId | null; name: string | null; address: string | null; reason: string }>({
    title: 'a peer that cannot be used is skipped',
    severity: 'note',
    text: ({ peer: id, name, reason }) => describeSkipped({ id, name, reason }),
  }),
  'peers-skipped': entry<{ more: number }>({
    title: 'more peers that cannot be used are skipped',
    severity: 'note',
    text: ({ more }) => describeMoreSkipped(more),
  }),
  'endpoint-unused': entry<{ peer: string; reason: string }>({
    title: "a peer's endpoint is not used",
    severity: 'note',
    text: ({ peer, reason }) => `the endpoint of ${peer} is not used: ${reason}`,
    isWarning: false,
  }),
};
