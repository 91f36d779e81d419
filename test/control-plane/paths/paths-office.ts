import { expect } from 'vitest';
import type { PeerMessage, PeerMessageKind } from '../../../src/contract/network.ts';
import type { PathSignals } from '../../../src/contract/paths.ts';
import type { ServeOptions } from '../../../src/control-plane/serve.ts';
import type { StoredPair } from '../../../src/control-plane/store/peers/peer-pairs.ts';
import { parsePrefix } from '../../../src/core/net/cidr.ts';
import { eventually } from '../../lab/eventually.ts';
import { enroll, makeKey, makeNetwork, type Plane, quiet, startPlane, withDatabase } from '../harness.ts';

export interface PathPeer {
  readonly id: number;
  readonly token: string;
  /** The source address of its requests. */
  readonly from: string;
}

/** Gatherings that end soon; others end only once all is stated. */
export const hasty = { ...quiet, gatherMs: 50, longestGatherMs: 50 };

const allKinds: readonly PeerMessageKind[] = ['probe', 'observe', 'candidates', 'try', 'switch', 'return'];

/** Two hosts behind NAT, and a connector with an endpoint, at a control plane behind a proxy. */
export async function startPaths(options: Partial<ServeOptions> = {}, cidr = '10.77.0.0/24') {
  const plane = await startPlane({ healthTimes: quiet, proxies: [parsePrefix('127.0.0.0/8')], ...options });
  const token = await plane.signIn('owner');
  const network = await makeNetwork(plane, token, { private_cidr: cidr, routes: ['192.168.5.0/24'] });
  let count = 0;
  const add = async (fields: object = {}): Promise<PathPeer> => {
    count += 1;
    const { body } = await enroll(plane, await makeKey(plane, token, network), { name: `host-${count}`, ...fields });
    return { id: body.data.peer.id, token: body.data.access_token, from: `203.0.113.${count}` };
  };
  const relay = await add({ peer_type: 'connector', endpoint: '198.51.100.1:51820' });
  return { plane, token, network, add, relay, one: await add(), two: await add(), ...pathActions(plane, network) };
}

export type PathsOffice = Awaited<ReturnType<typeof startPaths>>;

/** What the hosts of a network do at one control plane. */
export function pathActions(plane: Pick<Plane, 'url' | 'call' | 'dataDir'>, network: number) {
  const headersOf = ({ from }: PathPeer) => ({ 'x-forwarded-for': from });
  const signal = (peer: PathPeer, body: PathSignals, of = network) =>
    plane.call('POST', `/api/networks/${of}/peers/self/paths`, { token: peer.token, body, headers: headersOf(peer) });
  const etagOf = async (peer: PathPeer) => {
    const { headers } = await plane.call('GET', `/api/networks/${network}`, {
      ...{ token: peer.token, headers: headersOf(peer) },
    });
    return headers.get('etag') ?? '';
  };
  const read = async (peer: PathPeer, kinds: readonly PeerMessageKind[], more: Record<string, string>) => {
    const { body } = await plane.call('GET', `/api/networks/${network}`, {
      token: peer.token,
      headers: {
        ...{ ...headersOf(peer), 'if-none-match': await etagOf(peer), 'a-im': 'cpn-delta' },
        ...{ 'peer-messages': kinds.join(', '), ...more },
      },
    });
    return (body?.data.messages ?? []) as PeerMessage[];
  };
  /** The messages that wait for a host. */
  const take = async (peer: PathPeer, kinds = allKinds): Promise<PeerMessage[]> => {
    const all: PeerMessage[] = [];
    for (;;) {
      const messages = await read(peer, kinds, {});
      if (messages.length === 0) return all;
      all.push(...messages);
    }
  };
  const pairs = () =>
    withDatabase(plane.dataDir, (db) => db.selectFrom('peer_pairs').selectAll().orderBy('a').orderBy('b').execute());
  return {
    signal,
    take,
    etagOf,
    pairs,
    /** States facts that the control plane takes. */
    state: async (peer: PathPeer, body: PathSignals) => {
      const { status, body: refusal } = await signal(peer, body);
      expect([status, refusal]).toEqual([204, undefined]);
    },
    /** The reply to a request that waits for messages. */
    wait: (peer: PathPeer, kinds = allKinds) => read(peer, kinds, { prefer: 'wait=30' }),
    untilPairs: (isSo: (rows: readonly StoredPair[]) => boolean) =>
      eventually('the pairs are in this state', async () => isSo(await pairs())),
  };
}

export const observedAs = (endpoint: string, ...peers: PathPeer[]) => ({
  observed: peers.map(({ id }) => ({ peer: id, endpoint, stood: true })),
});

/** The endpoints that a message names. */
export function endpointsIn(messages: readonly PeerMessage[]): readonly string[] {
  return messages.flatMap(({ kind, data }) => (kind === 'try' ? data.endpoints : []));
}

/** The number of the attempt that a host is to make with a peer. */
export function attemptIn(messages: readonly PeerMessage[]): number {
  const found = messages.find((message) => message.kind === 'try');
  return found?.kind === 'try' ? found.data.attempt : expect.unreachable(JSON.stringify(messages));
}

/** Brings a pair to an attempt, and returns what each host is to try. */
export async function startTrying(
  { one, two, relay, state, take }: Pick<PathsOffice, 'one' | 'two' | 'relay' | 'state' | 'take'>,
  candidates: readonly [string[], string[]] = [[], []],
) {
  await state(one, { candidates: candidates[0], wanted: [two.id] });
  await take(two);
  await state(two, { candidates: candidates[1] });
  await take(relay);
  await state(relay, {
    observed: [one, two].map(({ id, from }) => ({ peer: id, endpoint: `${from}:4${id}`, stood: true })),
  });
  return [await take(one), await take(two)] as const;
}
