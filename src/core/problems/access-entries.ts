import { RulesNotLoaded } from '../errors/index.ts';
import { listNames } from '../util/list-names.ts';
import { entry, splitMessage } from './entry.ts';

interface UnloadedFacts {
  readonly interface: string;
  /** Why they do not load; null where they were not tried. */
  readonly error: string | null;
  readonly is_connector: boolean;
  readonly is_closed: boolean;
}

function unloaded({ interface: link, error, is_connector: isConnector, is_closed: isClosed }: UnloadedFacts) {
  if (error !== null) return splitMessage(new RulesNotLoaded(link, error, { isClosed, isConnector }));
  const effect = isClosed
    ? 'this host may not enforce the rules of the closed network'
    : isConnector
      ? 'nothing is forwarded'
      : 'neighbours reach the tunnel address';
  return {
    text: `the packet rules of ${link} are not all loaded; ${effect} until they are`,
    remedy: `cpn reconcile ${link}`,
  };
}

export const withoutNft = 'nft is missing or cannot be used';
const installNft = (link: string) =>
  `install nft (package nftables), with a kernel that has nf_tables, and type: cpn reconcile ${link}`;

/** Problems of the packet rules of this host, which also enforce the rules of a closed network. */
export const accessEntries = {
  'rules-not-loaded': entry<Omit<UnloadedFacts, 'interface'>>({
    title: 'the packet rules do not load',
    severity: 'problem',
    summary: () => 'its packet rules do not load',
    text: (facts) => unloaded(facts).text,
    remedy: (facts) => (facts.error === withoutNft ? installNft(facts.interface) : unloaded(facts).remedy),
  }),
  'address-open': entry<{ address: string; is_plain: boolean }>({
    title: 'neighbours reach the tunnel address',
    severity: 'note',
    text: ({ address, is_plain }) => {
      const why = is_plain ? 'cpn has no packet rules on this kind of host' : withoutNft;
      return `neighbours can reach the tunnel address ${address} of this host without the tunnel: ${why}`;
    },
    remedy: ({ interface: link, address, is_plain }) =>
      is_plain
        ? `in the firewall of this host, drop packets to ${address} that arrive on interfaces other than ${link}`
        : installNft(link),
  }),
  'access-rules-unread': entry<{ rules: readonly string[] }>({
    title: 'rules of the closed network cannot be used',
    severity: 'problem',
    summary: ({ rules }) =>
      `${rules.length} ${rules.length === 1 ? 'rule' : 'rules'} of the closed network cannot be used`,
    text: ({ rules }) =>
      `this version of cpn cannot use a part of these rules, and so allows less than they do: ${listNames(rules)}`,
    remedy: () => 'update cpn on this host',
  }),
  'access-rules-excessive': entry({
    title: 'the rules of the closed network are too many for this host',
    severity: 'problem',
    summary: () => 'too many rules: it allows nothing',
    text: () =>
      'the rules of the closed network select more pairs of peers and ports than this host can apply, so that it allows nothing',
    remedy: () => 'an admin can use fewer ports, or fewer peers with a tag: cpn rules edit',
  }),
  'access-rules-ignored': entry({
    title: 'this host ignores the rules of the closed network',
    severity: 'note',
    text: () =>
      'the network is closed, and this host enforces none of its rules: cpn has no packet rules on this kind of host',
    remedy: () => 'an admin can keep connections from it: cpn rules apply FILE --require-enforcement',
  }),
};
