import { expect, it } from 'vitest';
import { PassLogger } from '../../../../src/app/run/listeners/pass-logger.ts';
import { added } from '../../../../src/core/reconcile/change.ts';
import { SimulatedHost } from '../../simulated-host.ts';
import { passOf } from '../pass-of.ts';

it.each([
  [20, {}],
  [21, { more: 1 }],
  [25, { more: 5 }],
])('of %d changes in one pass the first 20 are logged, and the number of the others', async (count, more) => {
  const { tools, logged } = await SimulatedHost.empty();
  const changes = Array.from({ length: count }, (_, at) => added('route', `192.0.2.${at}/32`, 'cpn0', 'of the map'));
  new PassLogger(tools.log, 'cpn0').onPass(passOf(null, changes));
  const lines = changes.slice(0, 20).map(({ target }) => expect.stringContaining(`add route ${target}: `));
  expect(logged).toEqual([
    { level: 'info', message: 'drift repaired', facts: { interface: 'cpn0', changes: lines, ...more } },
  ]);
});
