import { isIP } from 'node:net';
import { InvalidValue, quote } from '../../core/errors/index.ts';
import type { NamedPeer } from '../../core/explain/check-name.ts';
import type { PeerId } from '../../core/map/model.ts';
import { findMistake, toAscii } from '../../core/names/domain.ts';
import { findNamed, type Naming } from '../../core/names/find-named.ts';
import { peerDomain } from '../../core/names/hosts-block.ts';
import { assignLabels } from '../../core/names/hosts-label.ts';
import { type Address, parseAddress } from '../../core/net/cidr.ts';
import { parseHost } from '../../core/net/endpoint.ts';
import type { Joined } from '../../store/state/state.ts';
import { labelNetwork } from '../reconcile/evaluate-network.ts';
import { resolveDeadline } from '../reconcile/names/resolve-names.ts';
import type { Tools } from '../tools.ts';

/** An address, and its origin if it was not given directly. */
export interface FoundAddress {
  /** Null for a name without an address. */
  readonly address: Address | null;
  /** Such as `the address of edge-1 in network office`; null for an address that was given. */
  readonly origin: string | null;
  /** The name that was looked up; null for an address, or the name of a peer in its network. */
  readonly name: LookedUpName | null;
}

/** A DNS name, and what the resolver of this host gives for it. */
export interface LookedUpName {
  /** In lower case, without a trailing dot. */
  readonly name: string;
  readonly answer: readonly Address[];
  /** The peer that has the name; null for a name of another domain. */
  readonly peer: NamedPeer | null;
}

/** A peer of any network of this host. */
interface LabelledPeer {
  readonly id: PeerId;
  readonly name: string;
  readonly address: Address;
  readonly link: string;
  readonly network: string;
  /** The domain of the network's names. */
  readonly domain: string;
  /** Current one first. */
  readonly labels: readonly string[];
}

/**
 * Finds the address for a text: an address, the name or the DNS label of a peer in any of the
 * networks, or a DNS name. The first of several addresses is used. The name of a peer below
 * `cpn.internal` has the address of the network's map, whether this host resolves it or not.
 *
 * Each host chooses its own name, which may be the DNS name of another host: a text with a dot is a
 * DNS name first, if it has an address.
 *
 * @throws InvalidValue for any other text, and for a name of one label that does not resolve
 * @throws WrongUsage for a name that several peers have
 */
export async function findAddress(
  tools: Pick<Tools, 'host'>,
  states: readonly Joined[],
  text: string,
): Promise<FoundAddress> {
  if (isIP(text) !== 0) return { address: parseAddress(text), origin: null, name: null };
  const peers = states.flatMap((state) => listPeers(state, states));
  const folded = fold(text.replace(/\.$/, ''));
  const found = folded.includes('.') ? await lookUp(tools, peers, text) : null;
  if (found !== null && found.address !== null) return found;
  const peer =
    findNamed(peers, text, { ...naming, names: ({ name }) => [name] }) ??
    findNamed(peers, folded, { ...naming, names: ({ name }) => [fold(name)] }) ??
    findNamed(peers, folded, { ...naming, names: ({ labels }) => labels });
  if (peer) return { address: peer.address, origin: describeOrigin(peer, folded, peers), name: null };
  const lookedUp = found ?? (await lookUp(tools, peers, text));
  if (lookedUp === null || (lookedUp.address === null && !lookedUp.name?.name.includes('.'))) throw notFound(text);
  return lookedUp;
}

/** Finds the address of a DNS name; null for another text. */
async function lookUp(
  { host }: Pick<Tools, 'host'>,
  peers: readonly LabelledPeer[],
  text: string,
): Promise<FoundAddress | null> {
  const name = readName(text);
  if (name === null) return null;
  const answer = await host.resolve(name, resolveDeadline);
  const named = peers.find(({ labels, domain }) => labels.some((label) => name === `${label}.${domain}`));
  if (named) {
    const { address, network, link } = named;
    const neighbours = peers.filter((each) => each.link === link);
    const own = describeOrigin(named, name.slice(0, -named.domain.length - 1), neighbours);
    const origin = `${own}${describeNamesakes(named, name, peers)}`;
    return { address, origin, name: { name, answer, peer: { peer: named.name, network, link, address } } };
  }
  const lookedUp = { name, answer, peer: null };
  const [address, ...more] = answer;
  if (address === undefined) return { address: null, origin: null, name: lookedUp };
  const rest = more.length === 0 ? '' : `; it has ${more.join(', ')} too`;
  const origin = `the address that the resolver gives for ${text}${rest}${describeNamesakes(null, name, peers)}`;
  return { address, origin, name: lookedUp };
}

function listPeers(state: Joined, states: readonly Joined[]): LabelledPeer[] {
  const { map } = state.membership;
  const domain = `${labelNetwork(state, states)}.${peerDomain}`;
  const labels = new Map(assignLabels(map.peers, state.labels).map((each) => [each.peer, each.labels]));
  return map.peers.map(({ id, name, address }) => ({
    ...{ id, name, address, link: state.interface, network: map.name, domain },
    labels: labels.get(id) ?? [],
  }));
}

/** Unicode has several spellings of one letter. */
function fold(text: string): string {
  return text.normalize('NFC').toLowerCase();
}

/**
 * States the peer, its DNS name if that differs from its name, and the other peers that have
 * `given` as a name or as a label.
 */
function describeOrigin(peer: LabelledPeer, given: string, peers: readonly LabelledPeer[]): string {
  const { name, network, labels, domain } = peer;
  const own = labels[0] === fold(name) ? '' : `, with the DNS name ${labels[0]}.${domain}`;
  const others = peers
    .filter((other) => other !== peer && (fold(other.name) === given || other.labels.includes(given)))
    .map((other) =>
      other.labels.includes(given)
        ? `; the DNS name ${given}.${other.domain} is of ${other.name}, ${other.address}`
        : describeNamed(other),
    );
  return [`the address of ${name} in network ${network}${own}`, ...others].join('');
}

/** The peers whose name is the DNS name of something else. */
function describeNamesakes(owner: LabelledPeer | null, dnsName: string, peers: readonly LabelledPeer[]): string {
  const others = peers.filter((other) => other !== owner && readName(other.name) === dnsName);
  return others.map(describeNamed).join('');
}

function describeNamed({ name, address, labels, domain }: LabelledPeer): string {
  return `; the peer named ${name} is ${address}, with the DNS name ${labels[0]}.${domain}`;
}

const naming: Omit<Naming<LabelledPeer>, 'names'> = {
  what: 'peer',
  describe: ({ id, name, address, link }) => `${quote(name)} (${id}, ${address}) in ${link}`,
  remedy: 'give one of the addresses',
};

/** Null for a text that is no DNS name. */
function readName(text: string): string | null {
  try {
    return parseHost(toAscii(text));
  } catch {
    return null;
  }
}

function notFound(text: string): InvalidValue {
  const mistake = findMistake(text);
  if (mistake !== null && mistake.rest !== '') {
    const flag = mistake.port === null ? '' : ` --port ${mistake.port}`;
    return new InvalidValue('address', text, mistake.rule, `write ${mistake.rest}${flag}`);
  }
  const rule = 'is neither an IP address, nor a peer of a joined network, nor a name that resolves on this host';
  const remedy = '"cpn status" lists the peers; write a name of another domain in full, such as db.corp.example';
  return new InvalidValue('address', text, rule, remedy);
}
