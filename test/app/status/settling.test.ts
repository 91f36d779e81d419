import { expect, test } from 'vitest';
import { evaluateNetwork } from '../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { readStatus } from '../../../src/app/status/status.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { dialled, peer } from '../../core/samples.ts';
import { Desk, joinedTo, mapAt } from '../desk.ts';

const before = joinedTo(mapAt('"1"', [peer(2, { endpoint: dialled(2) })]));
const newest = mapAt('"2"', [...before.membership.map.peers, peer(3, { endpoint: dialled(3) })]);
const after: Joined = { ...before, membership: { ...before.membership, map: newest } };

/** A host that a pass has changed; it saves that after `until` milliseconds. */
async function passingDesk(until: number) {
  const desk = await Desk.with(before);
  await passNetwork(desk.tools, 'cpn0', noUpdate, { withinMs: 1 });
  const { steps } = await evaluateNetwork(desk.tools, after);
  for (const step of steps) await desk.tools.host.apply(step);
  const done = Promise.withResolvers<void>();
  const pass = desk.tools.store.lock(async () => {
    await done.promise;
    await desk.tools.store.write({ ...(await desk.state()), membership: after.membership });
    await desk.tools.store.writeConfig('cpn0', (await evaluateNetwork(desk.tools, await desk.state())).config);
  });
  let slept = 0;
  const sleep = async (milliseconds: number) => {
    slept += milliseconds;
    if (slept < until) return;
    done.resolve();
    await pass;
  };
  const end = async () => {
    done.resolve();
    await pass;
  };
  return { tools: { ...desk.tools, sleep }, slept: () => slept, end };
}

test('what a pass has changed and not saved yet is no drift', async () => {
  const { tools } = await passingDesk(1_000);
  const [status] = await readStatus(tools);
  expect(status?.drift).toEqual([]);
  expect(status?.peers.map(({ name }) => name)).toContain('peer-3');
});

test('what a pass changed and saved after the state was read is no drift', async () => {
  const desk = await Desk.with(before);
  await passNetwork(desk.tools, 'cpn0', noUpdate, { withinMs: 1 });
  let isFirst = true;
  const observe: typeof desk.tools.host.observe = async (options) => {
    if (isFirst) {
      isFirst = false;
      await passNetwork(desk.tools, 'cpn0', { ...noUpdate, map: newest }, { withinMs: 1 });
    }
    return desk.tools.host.observe(options);
  };
  const [status] = await readStatus({ ...desk.tools, host: { ...desk.tools.host, observe } });
  expect(status?.drift).toEqual([]);
  expect(status?.peers.map(({ name }) => name)).toContain('peer-3');
});

test('a pass that takes long is not waited for', async () => {
  const { tools, slept, end } = await passingDesk(60_000);
  const [status] = await readStatus(tools);
  expect(status?.drift).not.toEqual([]);
  expect(slept()).toBeLessThanOrEqual(3_000);
  await end();
});

test('without a pass drift is reported at once, and so is that a network was taken down', async () => {
  const desk = await Desk.with(before);
  await passNetwork(desk.tools, 'cpn0', noUpdate, { withinMs: 1 });
  desk.actual = { ...desk.actual, routes: [], device: desk.actual.device && { ...desk.actual.device, peers: [] } };
  const { seconds } = desk;
  expect((await readStatus(desk.tools))[0]).toMatchObject({ state: 'degraded', drift: [{ kind: 'peer' }] });
  expect(desk.seconds).toBe(seconds);
  await desk.tools.store.write({ ...before, enabled: false });
  expect((await readStatus(desk.tools))[0]?.warnings).toContain('taken down; "cpn up cpn0" brings it up');
});
