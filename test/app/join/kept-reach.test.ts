import { expect, it } from 'vitest';
import { joinNetwork } from '../../../src/app/join/join.ts';
import type { JoinRequest } from '../../../src/app/join/join-request.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { Refused } from '../../../src/core/errors/index.ts';
import { parseProxy } from '../../../src/core/net/proxy.ts';
import type { ServiceAddress } from '../../../src/core/net/service-address.ts';
import { options } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';

const { service } = joinedTo(mapAt('"1"', []));
const [known, asked] = ['known', 'asked'].map((name) => parseProxy(`http://${name}.example:3128`, '--proxy'));
const refused = new Refused(403, 'the enrolment', 'the key is used up', 'x');

/** The address at which a join is sent, on a host with networks at these addresses. */
async function findReach(others: readonly ServiceAddress[], changes: Partial<JoinRequest>) {
  const simulated = await SimulatedHost.empty();
  const state = joinedTo(mapAt('"1"', []));
  for (const [at, each] of others.entries()) {
    await simulated.tools.store.write({ ...state, interface: `cpn${at}`, service: each });
  }
  simulated.service.onEnroll = () => {
    throw refused;
  };
  const request: JoinRequest = {
    ...{ token: new Secret('cpn_new'), service, name: 'host', type: 'origin', endpoint: null, interface: 'cpn9' },
    ...{ options, named: new Set(), networkSecret: null, personalToken: null },
    ...{ isUnattended: false, handshakeTimeoutMs: 0 },
    ...changes,
  };
  await expect(joinNetwork(simulated.tools, request)).rejects.toBe(refused);
  return simulated.service.knownService?.service;
}

const proxied: ServiceAddress = { ...service, proxy: known ?? 'none' };
const certified: ServiceAddress = { ...service, authorities: ['PEM of the known CA'] };

it.each<[string, readonly ServiceAddress[], Partial<JoinRequest>, Partial<ServiceAddress>]>([
  ['the proxy and the CAs of earlier joins there', [service, proxied, certified], {}, { ...proxied, ...certified }],
  [
    'none of joins elsewhere',
    [proxied, certified].map((each) => ({ ...each, url: 'https://203.0.113.98' })),
    {},
    service,
  ],
  [
    'the proxy and the CAs that are given',
    [proxied, certified],
    {
      service: { ...service, proxy: asked ?? 'none', authorities: ['PEM of another CA'] },
      named: new Set(['proxy', 'authorities'] as const),
    },
    { proxy: asked ?? 'none', authorities: ['PEM of another CA'] },
  ],
  [
    'the earlier proxy in place of that of the environment',
    [proxied],
    { service: { ...service, proxy: asked ?? 'none' } },
    { proxy: known ?? 'none' },
  ],
])('a join reaches its control plane by %s', async (_, others, changes, reach) => {
  expect(await findReach(others, changes)).toEqual({ ...service, ...reach });
});
