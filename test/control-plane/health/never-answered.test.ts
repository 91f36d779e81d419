import { expect, test } from 'vitest';
import { readStatus } from '../../../src/app/status/status.ts';
import { summarizeNetwork } from '../../../src/console/logic/network/summarize.ts';
import type { Peer } from '../../../src/contract/peer.ts';
import { startExaminedHost } from '../../app/doctor/examined-host.ts';
import { mapAt } from '../../app/joined-state.ts';
import { dialled, peer } from '../../core/samples.ts';
import { eventually } from '../../lab/eventually.ts';
import { startOffice } from './office.ts';

test('the console, the API and cpn status name the same connector as one that never answered, until it answers', async () => {
  const office = await startOffice();
  const { plane, network, token, one, two, three, call, report } = office;
  const edges = [two, three].map(({ name }, at) =>
    peer(at + 2, { name, type: 'connector', endpoint: dialled(at + 2) }),
  );
  const { simulated } = await startExaminedHost(mapAt('"1"', edges));
  const named = async () => {
    const { body } = await plane.call('GET', `/api/networks/${network}`, { token });
    const health = await office.health();
    const nameOf = (id: number) => body.data.peers.find((each: Peer) => each.id === id)?.name;
    const { troubles } = summarizeNetwork(body.data, health);
    const [status] = await readStatus(simulated.tools);
    const summaries = (await plane.call('GET', '/api/health', { token })).body.data;
    return {
      console: troubles.flatMap((each) => (each.kind === 'silent-connector' ? [each.peer.name] : [])),
      routes: health.routes.flatMap(({ never_answered = [] }) => never_answered.map(nameOf)),
      status: status?.routes.flatMap(({ via, state }) => (state === 'never' ? [via] : [])),
      count: summaries.find((each: { network: number }) => each.network === network)?.silent_connectors,
    };
  };
  for (const each of [one, two]) await call(each);
  await eventually('two answered', async () => (await named()).count === 1);
  expect(await named()).toEqual({ console: ['three'], routes: ['three'], status: ['three'], count: 1 });
  // It makes no request itself, and a host reaches it.
  await report(one, { paths: [{ peer: three.id, path: 'direct' }] });
  simulated.updatePeer(3, { latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000) });
  await eventually('three answered', async () => (await named()).count === 0);
  expect(await named()).toEqual({ console: [], routes: [], status: [], count: 0 });
});
