import { expect, it } from 'vitest';
import { evaluateNetwork } from '../../../../src/app/reconcile/evaluate-network.ts';
import { ServiceListener } from '../../../../src/app/run/listeners/service-listener.ts';
import { Unreachable } from '../../../../src/core/errors/index.ts';
import type { Prefix } from '../../../../src/core/net/cidr.ts';
import type { Joined } from '../../../../src/store/state/state.ts';
import { eventually } from '../../../lab/eventually.ts';
import { one, range, serving, startServing, two } from '../../serving.ts';
import type { SimulatedHost } from '../../simulated-host.ts';
import { passOf } from '../pass-of.ts';

const unreachable = new Unreachable('https://x', 'refused', { delivered: false, heard: true, retryAfterMs: null });
const warnings = (simulated: SimulatedHost) => simulated.logged.filter(({ level }) => level === 'warn').length;

/** A connector, and a pass over its network after which these routes are noted as dead. */
async function start(initial: Joined) {
  const simulated = await startServing(initial);
  const listener = new ServiceListener(simulated.tools, 'cpn0');
  const pass = async (dead: readonly Prefix[], state = initial) => {
    await simulated.tools.store.amendNotes('cpn0', { dead });
    await listener.onPass(passOf(await evaluateNetwork(simulated.tools, state)));
  };
  return { simulated, pass };
}

it('withdraws the routes whose LAN is dead, and all routes of a drained connector', async () => {
  const { simulated, pass } = await start(serving());
  await pass([one]);
  await eventually('the control plane receives it', () => simulated.service.withdrawn.length === 1);
  await pass([one], serving({ drained: true }));
  await eventually('the control plane receives it', () => simulated.service.withdrawn.length === 2);
  expect(simulated.service.withdrawn).toEqual([[one], [range, one, two]]);
});

it('sends one report at a time, and then the newest', async () => {
  const { simulated, pass } = await start(serving());
  const first = Promise.withResolvers<void>();
  const requests: (readonly string[])[] = [];
  simulated.service.onWithdraw = (prefixes) => {
    requests.push(prefixes);
    return first.promise;
  };
  await pass([one]);
  await eventually('a request', () => requests.length === 1);
  await pass([one, two]);
  await pass([two]);
  first.resolve();
  await eventually('the control plane receives it', () => simulated.service.withdrawn.length === 2);
  expect(requests).toEqual([[one], [two]]);
});

it('repeats a failed report after the next pass, and logs the failure once', async () => {
  const { simulated, pass } = await start(serving());
  let requests = 0;
  simulated.service.onWithdraw = () => {
    requests += 1;
    throw unreachable;
  };
  for (const attempt of [1, 2, 3]) {
    await pass([one]);
    await eventually('a request', () => requests === attempt);
  }
  simulated.service.onWithdraw = () => {};
  await pass([one]);
  await eventually('the control plane receives it', () => simulated.service.withdrawn.length === 1);
  await eventually(
    'the end of it',
    () => simulated.logged.at(-1)?.message === 'routes out of service are reported again',
  );
  expect(warnings(simulated)).toBe(1);
});

it('continues after an unexpected error', async () => {
  const { simulated, pass } = await start(serving());
  simulated.service.onWithdraw = () => {
    throw new TypeError('a bug');
  };
  await pass([one]);
  await eventually('the control plane receives it', () => simulated.logged.some(({ level }) => level === 'error'));
  simulated.service.onWithdraw = () => {};
  await pass([one]);
  await eventually('the control plane receives it', () => simulated.service.withdrawn.length === 1);
});

it('reports nothing for a host that is no connector', async () => {
  const { simulated, pass } = await start(serving({}, 'origin'));
  await pass([one]);
  expect(simulated.service.connectOptions).toBeUndefined();
});

it.each([
  ['a network that spreads its hosts', { spread: true }, true, [true]],
  ['a network that spreads its hosts, without masquerading', { spread: true }, false, []],
  ['any other network', {}, true, []],
] as const)('states in %s what the map does not say yet about masquerading', async (_, more, masquerade, stated) => {
  const state = serving();
  const { membership, options } = state;
  const map = { ...membership.map, ...more };
  const { simulated, pass } = await start({
    ...state,
    membership: { ...membership, map },
    options: { ...options, masquerade },
  });
  await pass([one], { ...state, membership: { ...membership, map }, options: { ...options, masquerade } });
  await eventually('the control plane receives it', () => simulated.service.withdrawn.length === 1);
  await eventually('the statement', () => simulated.service.announcedMasquerading.length === stated.length);
  expect(simulated.service.announcedMasquerading).toEqual(stated);
});
