import { Health } from '../../../src/contract/health.ts';
import type { ServeOptions } from '../../../src/control-plane/serve.ts';
import { eventually } from '../../lab/eventually.ts';
import { enroll, makeKey, makeNetwork, type Plane, startPlane, withDatabase } from '../harness.ts';

export interface OfficePeer {
  readonly id: number;
  readonly name: string;
  readonly token: string;
}

/** Short enough for tests, which move the clock. */
export const soon = { flushMs: 50, tickMs: 50, settleMs: 10 };
export const silence = 91_000;

/** A network with a route, a host and two connectors, and another network with a stranger. */
export async function startOffice(options: Partial<ServeOptions> = {}) {
  const plane = await startPlane({ healthTimes: soon, ...options });
  return { plane, ...(await makeOffice(plane)) };
}

export type Office = Awaited<ReturnType<typeof startOffice>>;

async function makeOffice(plane: Plane) {
  const token = await plane.signIn('owner');
  const network = await makeNetwork(plane, token, { routes: ['192.168.1.0/24'] });
  const add = async (to: number, name: string, type = 'origin'): Promise<OfficePeer> => {
    const { body } = await enroll(plane, await makeKey(plane, token, to), { name, peer_type: type });
    return { id: body.data.peer.id, name, token: body.data.access_token };
  };
  return {
    ...{ token, network },
    one: await add(network, 'one'),
    two: await add(network, 'two', 'connector'),
    three: await add(network, 'three', 'connector'),
    stranger: await add(await makeNetwork(plane, token, { private_cidr: '10.78.0.0/24' }), 'stranger'),
    ...actions(plane, network, token),
  };
}

/** Time goes by in which only these make requests: while all are silent, none is offline. */
export async function outlast({ plane }: Pick<Office, 'plane'>, calls: () => Promise<unknown>[]): Promise<void> {
  plane.clock.advance(silence - 30_000);
  const { length } = await Promise.all(calls());
  const at = plane.clock.now().toISOString();
  await eventually('the requests are stored', async () => {
    const rows = await withDatabase(plane.dataDir, (db) => db.selectFrom('peer_health').select('last_seen').execute());
    return rows.filter(({ last_seen }) => last_seen === at).length >= length;
  });
  plane.clock.advance(30_000);
}

/** What the hosts and the owner of a network do at one control plane. */
export function actions(plane: Pick<Plane, 'call'>, network: number, token: string) {
  const health = async (): Promise<Health> => {
    const { body } = await plane.call('GET', `/api/networks/${network}/health`, { token });
    return Health.parse(body.data);
  };
  const stateOf = async ({ id }: OfficePeer) => (await health()).peers.find((peer) => peer.id === id)?.state;
  return {
    health,
    stateOf,
    report: (peer: OfficePeer, body: object) =>
      plane.call('POST', `/api/networks/${network}/peers/${peer.id}/report`, { token: peer.token, body }),
    /** A request as each host makes it once a minute. */
    call: async (peer: OfficePeer, agent = 'cpn/0.1.0 (linux x64)') => {
      const headers = { 'user-agent': agent };
      return plane.call('GET', `/api/networks/${network}`, { token: peer.token, headers });
    },
    /** The events of health, without their details. */
    events: async (): Promise<string[]> => {
      const { body } = await plane.call('GET', `/api/networks/${network}/events?after=0&limit=1000`, { token });
      const shown = body.data.filter(({ type }: { type: string }) => !/enrolled|updated/.test(type));
      return shown.map(
        ({ type, peer, route }: { type: string; peer: OfficePeer | null; route: string | null }) =>
          `${type} ${[route, peer?.name].filter(Boolean).join(' ')}`,
      );
    },
    untilState: (peer: OfficePeer, state: string) =>
      eventually(`${peer.name} is ${state}`, async () => (await stateOf(peer)) === state),
  };
}
