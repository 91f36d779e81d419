import { expect, it } from 'vitest';
import { PathRecorder } from '../../../../src/app/run/paths/path-recorder.ts';
import { noMeter } from '../../../../src/app/tools.ts';
import { DiskFailed } from '../../../../src/core/errors/index.ts';
import { peer } from '../../../core/samples.ts';
import { joinedTo, mapAt } from '../../joined-state.ts';
import { SimulatedHost } from '../../simulated-host.ts';

const message = {
  ...{ peer: 4, attempt: 1, start_in_ms: 0, first: true },
  ...{ endpoints: ['203.0.113.9:4711'], observed: ['203.0.113.1:51820'] },
};
const facts = { own: [], tried: [], outcome: 'failed' } as const;

it('records the attempts and switches of each peer, one after another, and counts them', async () => {
  const simulated = await SimulatedHost.with(joinedTo(mapAt('"1"', [peer(4)])));
  const counted: unknown[] = [];
  const count = (...call: unknown[]) => void counted.push(call);
  const meter = { ...noMeter, triedPath: count, switchedPath: count };
  const recorder = new PathRecorder({ ...simulated.tools, meter }, 'cpn0');
  recorder.attempted(4, message, facts);
  recorder.attempted(5, { ...message, endpoints: [] }, { ...facts, outcome: 'blocked' });
  recorder.switched(4, 'direct', null);
  recorder.switched(4, 'relayed', 'lost');
  await recorder.settle();
  const { paths } = await simulated.tools.store.readNotes('cpn0');
  expect(paths).toMatchObject({
    4: { attempt: { outcome: 'failed', observed: message.observed }, switched: { to: 'relayed', why: 'lost' } },
    5: { attempt: { outcome: 'blocked' }, switched: null },
  });
  expect(counted).toEqual([
    ['cpn0', 'failed'],
    ['cpn0', 'blocked'],
    ['cpn0', 'direct'],
    ['cpn0', 'relayed'],
  ]);
});

it('ignores notes that cannot be written, and records the next fact', async () => {
  const simulated = await SimulatedHost.with(joinedTo(mapAt('"1"', [peer(4)])));
  const { store } = simulated.tools;
  let isFull = true;
  const amendNotes: typeof store.amendNotes = async (...given) => {
    if (isFull) throw new DiskFailed('write', '/run/cpn', { code: 'ENOSPC' } as NodeJS.ErrnoException);
    return store.amendNotes(...given);
  };
  const recorder = new PathRecorder({ ...simulated.tools, store: { ...store, amendNotes } }, 'cpn0');
  recorder.switched(4, 'direct', null);
  await recorder.settle();
  isFull = false;
  recorder.switched(5, 'direct', null);
  await recorder.settle();
  expect(Object.keys((await store.readNotes('cpn0')).paths)).toEqual(['5']);
});
