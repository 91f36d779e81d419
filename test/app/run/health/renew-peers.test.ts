import { expect, it } from 'vitest';
import { reconcileNetworks } from '../../../../src/app/networks/reconcile.ts';
import { renewPeers } from '../../../../src/app/run/health/renew-peers.ts';
import { dialled, peer } from '../../../core/samples.ts';
import { joinedTo, mapAt } from '../../joined-state.ts';
import { SimulatedHost } from '../../simulated-host.ts';
import { answerWith } from '../../simulated-service.ts';

const two = peer(2, { endpoint: dialled(2) });
const three = peer(3, { endpoint: dialled(3) });

it('a peer that a pass removes before the lock is free does not come back', async () => {
  const simulated = await SimulatedHost.with(joinedTo(mapAt('"1"', [two, three])));
  simulated.service.mapReplies = [answerWith(mapAt('"1"', [two, three]))];
  await reconcileNetworks(simulated.tools);
  simulated.service.mapReplies = [answerWith(mapAt('"2"', [three]))];
  const { lock } = simulated.tools.store;
  const lateLock: typeof lock = async (work) => {
    await reconcileNetworks(simulated.tools);
    return lock(work);
  };
  const tools = { ...simulated.tools, store: { ...simulated.tools.store, lock: lateLock } };
  const renewed = await renewPeers(tools, 'cpn0', (known) => [...known.values()]);
  expect(renewed.map(({ publicKey }) => publicKey)).toEqual([three.publicKey]);
  expect(simulated.actual.device?.peers.map(({ publicKey }) => publicKey)).toEqual([three.publicKey]);
});

it('nothing else changes the peers meanwhile', async () => {
  const simulated = await SimulatedHost.with(joinedTo(mapAt('"1"', [two])));
  simulated.service.mapReplies = [answerWith(mapAt('"1"', [two]))];
  await reconcileNetworks(simulated.tools);
  await renewPeers(
    {
      ...simulated.tools,
      host: {
        ...simulated.tools.host,
        apply: async (step) => {
          expect(await simulated.tools.store.isLocked()).toBe(true);
          await simulated.tools.host.apply(step);
        },
      },
    },
    'cpn0',
    (known) => [...known.values()],
  );
  expect(simulated.steps.at(-1)?.do).toBe('renew-peers');
});
