import type { Health } from '../../../src/contract/health.ts';
import type { ServeOptions } from '../../../src/control-plane/serve.ts';
import { enroll, makeKey, makeNetwork, type Plane, startPlane } from '../harness.ts';

interface OfficePeer {
  readonly id: number;
  readonly token: string;
}

/** A network with a route and three hosts, and one with a stranger. */
export async function startOffice(options: Partial<ServeOptions> = {}) {
  const plane = await startPlane(options);
  return { plane, ...(await makeOffice(plane)) };
}

async function makeOffice(plane: Plane) {
  const token = await plane.signIn('owner');
  const network = await makeNetwork(plane, token, { routes: ['192.168.1.0/24'] });
  const add = async (to: number, name: string, type = 'origin'): Promise<OfficePeer> => {
    const { body } = await enroll(plane, await makeKey(plane, token, to), { name, peer_type: type });
    return { id: body.data.peer.id, token: body.data.access_token };
  };
  return {
    ...{ token, network },
    one: await add(network, 'one'),
    two: await add(network, 'two', 'connector'),
    three: await add(network, 'three', 'connector'),
    stranger: await add(await makeNetwork(plane, token, { private_cidr: '10.78.0.0/24' }), 'stranger'),
    report: (peer: OfficePeer, body: object) =>
      plane.call('POST', `/api/networks/${network}/peers/${peer.id}/report`, { token: peer.token, body }),
    health: async (): Promise<Health> => {
      const { body } = await plane.call('GET', `/api/networks/${network}/health`, { token });
      return body.data;
    },
  };
}
