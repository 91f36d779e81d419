import { expect, it } from 'vitest';
import { decodeMap } from '../../../src/api/decode/map.ts';
import { reconcileNetworks } from '../../../src/app/networks/reconcile.ts';
import { evaluateNetwork } from '../../../src/app/reconcile/evaluate-network.ts';
import { ProblemListener } from '../../../src/app/run/listeners/problem-listener.ts';
import { readStatus } from '../../../src/app/status/status.ts';
import { networkBody, peerBody, source } from '../../api/samples.ts';
import { dialled, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { passOf } from '../run/pass-of.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith } from '../simulated-service.ts';

const dayMs = 86_400_000;
const others = [peer(2, { endpoint: dialled(2) })];

/** The map, in which this host expires after so many days. */
function endingIn(simulated: SimulatedHost, revision: string, days: number) {
  const map = mapAt(revision, others);
  const expiresAt = simulated.tools.now().getTime() + days * dayMs;
  return { ...map, peers: map.peers.map((each) => (each.id === 1 ? { ...each, expiresAt } : each)) };
}

it('a host reads its expiry from the map, stores it, and warns when it is near', async () => {
  const simulated = await SimulatedHost.with(joinedTo(mapAt('"1"', others)));
  const watch = new ProblemListener(simulated.tools);
  const pass = async () => watch.onPass(passOf(await evaluateNetwork(simulated.tools, await simulated.state())));
  const look = async (days: number) => {
    const map = endingIn(simulated, `"${days}"`, days);
    simulated.service.mapReplies = [answerWith(map)];
    await reconcileNetworks(simulated.tools);
    await pass();
    await pass();
    const [status] = await readStatus(simulated.tools);
    expect(status?.expiresAt).toBe(new Date(map.peers[0]?.expiresAt ?? 0).toISOString());
    return status;
  };
  const far = await look(30);
  expect([far?.warnings, simulated.logged.filter(({ level }) => level === 'warn')]).toEqual([[], []]);
  const near = await look(2.5);
  expect(near?.warnings).toEqual([expect.stringContaining('this host expires in 3 days, on ')]);
  simulated.seconds += 4 * 86_400;
  await pass();
  const warned = simulated.logged.filter(({ level }) => level === 'warn').map(({ message }) => message);
  expect(warned).toEqual(['this host expires soon', 'this host expired']);
});

it.each([
  ['an instant', '2030-01-01T00:00:00.000Z', Date.parse('2030-01-01T00:00:00.000Z')],
  ['what another service means by it', 90, undefined],
  ['a word', 'soon', undefined],
])('an end that is %s is taken or passed over', (_, expires_at, expected) => {
  const body = { data: networkBody({ peers: [peerBody(1, { expires_at })] }) };
  expect(decodeMap(body, source, { network: 7, etag: '"1"' }).peers[0]?.expiresAt).toBe(expected);
});
