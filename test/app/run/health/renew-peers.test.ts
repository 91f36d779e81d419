import { expect, it } from 'vitest';
import { reconcileNetworks } from '../../../../src/app/networks/reconcile.ts';
import { renewPeers } from '../../../../src/app/run/health/renew-peers.ts';
import { dialled, peer } from '../../../core/samples.ts';
import { answerWith, Desk, joinedTo, mapAt } from '../../desk.ts';

const two = peer(2, { endpoint: dialled(2) });
const three = peer(3, { endpoint: dialled(3) });

it('a peer that a pass removes before the lock is free does not come back', async () => {
  const desk = await Desk.with(joinedTo(mapAt('"1"', [two, three])));
  desk.answers = [answerWith(mapAt('"1"', [two, three]))];
  await reconcileNetworks(desk.tools);
  desk.answers = [answerWith(mapAt('"2"', [three]))];
  const { lock } = desk.tools.store;
  const lateLock: typeof lock = async (work) => {
    await reconcileNetworks(desk.tools);
    return lock(work);
  };
  const tools = { ...desk.tools, store: { ...desk.tools.store, lock: lateLock } };
  const renewed = await renewPeers(tools, 'cpn0', (known) => [...known.values()]);
  expect(renewed.map(({ publicKey }) => publicKey)).toEqual([three.publicKey]);
  expect(desk.actual.device?.peers.map(({ publicKey }) => publicKey)).toEqual([three.publicKey]);
});

it('nothing else changes the peers meanwhile', async () => {
  const desk = await Desk.with(joinedTo(mapAt('"1"', [two])));
  desk.answers = [answerWith(mapAt('"1"', [two]))];
  await reconcileNetworks(desk.tools);
  await renewPeers(
    {
      ...desk.tools,
      host: {
        ...desk.tools.host,
        apply: async (step) => {
          expect(await desk.tools.store.isLocked()).toBe(true);
          await desk.tools.host.apply(step);
        },
      },
    },
    'cpn0',
    (known) => [...known.values()],
  );
  expect(desk.steps.at(-1)?.do).toBe('renew-peers');
});
