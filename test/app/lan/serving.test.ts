import { expect, test } from 'vitest';
import { findServing } from '../../../src/app/lan/serving.ts';
import { evaluateNetwork } from '../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { noNotes } from '../../../src/store/notes.ts';
import { options } from '../../core/samples.ts';
import { one, serving, startServing, two } from '../serving.ts';

test('the last connector of a route that a map rules out here is not in service for it', async () => {
  const simulated = await startServing(serving({ options: { ...options, maps: [{ route: two, local: one }] } }));
  await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 20_000 });
  const evaluation = await evaluateNetwork(simulated.tools, await simulated.state());
  expect(findServing(evaluation, noNotes)).toEqual([
    { route: two, standby: null },
    { route: one, standby: `this host refuses it: it overlaps ${one}, which this host serves as ${two}` },
  ]);
});
