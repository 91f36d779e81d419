import { expect, test } from 'vitest';
import { evaluateNetwork } from '../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { readStatus } from '../../../src/app/status/status.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { dialled, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';

const before = joinedTo(mapAt('"1"', [peer(2, { endpoint: dialled(2) })]));
const newest = mapAt('"2"', [...before.membership.map.peers, peer(3, { endpoint: dialled(3) })]);
const after: Joined = { ...before, membership: { ...before.membership, map: newest } };

/** A host that a pass has changed; it saves that after `until` milliseconds. */
async function passingDesk(until: number) {
  const simulated = await SimulatedHost.with(before);
  await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 1 });
  const { steps } = await evaluateNetwork(simulated.tools, after);
  for (const step of steps) await simulated.tools.host.apply(step);
  const done = Promise.withResolvers<void>();
  const pass = simulated.tools.store.lock(async () => {
    await done.promise;
    await simulated.tools.store.write({ ...(await simulated.state()), membership: after.membership });
    await simulated.tools.store.writeConfig(
      'cpn0',
      (await evaluateNetwork(simulated.tools, await simulated.state())).config,
    );
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
  return { tools: { ...simulated.tools, sleep }, slept: () => slept, end };
}

test('what a pass has changed and not saved yet is no drift', async () => {
  const { tools } = await passingDesk(1_000);
  const [status] = await readStatus(tools);
  expect(status?.drift).toEqual([]);
  expect(status?.peers.map(({ name }) => name)).toContain('peer-3');
});

test('what a pass changed and saved after the state was read is no drift', async () => {
  const simulated = await SimulatedHost.with(before);
  await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 1 });
  let isFirst = true;
  const observe: typeof simulated.tools.host.observe = async (options) => {
    if (isFirst) {
      isFirst = false;
      await passNetwork(simulated.tools, 'cpn0', { ...noUpdate, map: newest }, { withinMs: 1 });
    }
    return simulated.tools.host.observe(options);
  };
  const [status] = await readStatus({ ...simulated.tools, host: { ...simulated.tools.host, observe } });
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
  const simulated = await SimulatedHost.with(before);
  await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 1 });
  simulated.actual = {
    ...simulated.actual,
    routes: [],
    device: simulated.actual.device && { ...simulated.actual.device, peers: [] },
  };
  const { seconds } = simulated;
  expect((await readStatus(simulated.tools))[0]).toMatchObject({ state: 'degraded', drift: [{ kind: 'peer' }] });
  expect(simulated.seconds).toBe(seconds);
  await simulated.tools.store.write({ ...before, enabled: false });
  expect((await readStatus(simulated.tools))[0]?.warnings).toContain('cpn0 was taken down; "cpn up cpn0" brings it up');
});
