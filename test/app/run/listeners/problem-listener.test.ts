import { expect, it } from 'vitest';
import { evaluateNetwork } from '../../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../../src/app/reconcile/state-update.ts';
import { ProblemListener } from '../../../../src/app/run/listeners/problem-listener.ts';
import { peer, prefix } from '../../../core/samples.ts';
import { joinedTo, mapAt } from '../../joined-state.ts';
import { SimulatedHost } from '../../simulated-host.ts';
import { passOf } from '../pass-of.ts';

it('a route that is not ours is logged once while it is there, and when it is gone', async () => {
  const simulated = await SimulatedHost.with(joinedTo(mapAt('"1"', [peer(2)])));
  await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 1 });
  const watch = new ProblemListener(simulated.tools);
  const look = async () => watch.onPass(passOf(await evaluateNetwork(simulated.tools, await simulated.state())));
  const { actual } = simulated;
  await look();
  simulated.actual = {
    ...actual,
    routes: [...actual.routes, { prefix: prefix('10.9.0.0/16'), table: 'main', protocol: 'boot', metric: 0 }],
  };
  await look();
  await look();
  simulated.actual = actual;
  await look();
  const logged = simulated.logged.filter(({ facts }) => 'route' in facts);
  expect(logged).toMatchObject([
    {
      level: 'warn',
      message: 'a route into the tunnel does not belong to this network',
      facts: { code: 'route-foreign', interface: 'cpn0', command: 'ip route del 10.9.0.0/16 dev cpn0' },
    },
    {
      level: 'info',
      message: 'over: a route into the tunnel does not belong to this network',
      facts: { route: '10.9.0.0/16' },
    },
  ]);
});
