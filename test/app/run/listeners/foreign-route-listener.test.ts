import { expect, it } from 'vitest';
import { evaluateNetwork } from '../../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../../src/app/reconcile/state-update.ts';
import { ForeignRouteListener } from '../../../../src/app/run/listeners/foreign-route-listener.ts';
import { peer, prefix } from '../../../core/samples.ts';
import { Desk, joinedTo, mapAt } from '../../desk.ts';
import { passOf } from '../pass-of.ts';

it('a route that is not ours is logged once while it is there, and when it is gone', async () => {
  const desk = await Desk.with(joinedTo(mapAt('"1"', [peer(2)])));
  await passNetwork(desk.tools, 'cpn0', noUpdate, { withinMs: 1 });
  const watch = new ForeignRouteListener(desk.tools, 'cpn0');
  const look = async () => watch.onPass(passOf(await evaluateNetwork(desk.tools, await desk.state())));
  const { actual } = desk;
  await look();
  desk.actual = {
    ...actual,
    routes: [...actual.routes, { prefix: prefix('10.9.0.0/16'), table: 'main', protocol: 'boot', metric: 0 }],
  };
  await look();
  await look();
  desk.actual = actual;
  await look();
  const logged = desk.logged.filter(({ facts }) => 'route' in facts);
  expect(logged).toMatchObject([
    { level: 'warn', facts: { route: '10.9.0.0/16', remedy: 'ip route del 10.9.0.0/16 dev cpn0' } },
    { level: 'info', facts: { route: '10.9.0.0/16' } },
  ]);
});
