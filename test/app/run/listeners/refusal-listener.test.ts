import { describe, expect, it } from 'vitest';
import { evaluateNetwork } from '../../../../src/app/reconcile/evaluate-network.ts';
import { RefusalListener } from '../../../../src/app/run/listeners/refusal-listener.ts';
import { CommandFailed } from '../../../../src/core/errors/index.ts';
import type { AccessRules } from '../../../../src/core/map/access-rules.ts';
import type { RefusedConnection } from '../../../../src/core/rules/refused.ts';
import { address, peer } from '../../../core/samples.ts';
import { joinedTo, mapAt } from '../../joined-state.ts';
import { SimulatedHost } from '../../simulated-host.ts';
import { passOf } from '../pass-of.ts';

const connection = (port: number, from = '10.77.0.2'): RefusedConnection => ({
  ...{ from: address(from), to: address('10.77.0.1'), protocol: 'tcp', port, seconds: 3 },
});
const refused = (...latest: readonly RefusedConnection[]) => ({ packets: { in: 1, out: 0 }, latest });
const denyAll: AccessRules = { rules: [], requiresEnforcement: false };

async function start(rules?: AccessRules) {
  const map = mapAt('"1"', [peer(2)], { routes: [] });
  const simulated = await SimulatedHost.with(joinedTo(rules ? { ...map, rules } : map));
  const reported: number[][] = [];
  const listener = new RefusalListener(simulated.tools, 'cpn0', (all) => reported.push(all.map(({ port }) => port)));
  /** Makes a pass so many seconds after the one before, and returns what it logged. */
  const pass = async (seconds = 60) => {
    simulated.seconds += seconds;
    const before = simulated.logged.length;
    await listener.onPass(passOf(await evaluateNetwork(simulated.tools, await simulated.state())));
    return simulated.logged.slice(before).map(({ level, message, facts }) => ({ level, message, ...facts }));
  };
  return { simulated, listener, pass, reported };
}

const message = 'the rules of the network refused a connection';

describe('refused connections', () => {
  it('are logged and reported once while they last, and again later', async () => {
    const { simulated, pass, reported } = await start(denyAll);
    expect(await pass()).toEqual([]);
    simulated.refused = refused(connection(22), connection(80, '192.168.50.7'));
    expect(await pass()).toEqual([
      {
        ...{ level: 'info', message, interface: 'cpn0', from: '10.77.0.2', from_peer: 'peer-2' },
        ...{ to: '10.77.0.1', to_peer: 'peer-1', protocol: 'tcp', port: 22 },
      },
      {
        ...{ level: 'info', message, interface: 'cpn0', from: '192.168.50.7', from_peer: undefined },
        ...{ to: '10.77.0.1', to_peer: 'peer-1', protocol: 'tcp', port: 80 },
      },
    ]);
    simulated.refused = refused(connection(443), { ...connection(22), seconds: 60 });
    expect(await pass()).toMatchObject([{ port: 443 }]);
    simulated.refused = refused();
    expect(await pass()).toEqual([]);
    simulated.refused = refused(connection(22));
    expect(await pass()).toMatchObject([{ port: 22 }]);
    expect(reported).toEqual([[22, 80], [443], [22]]);
  });

  it('are read at most once a minute, and ten of them are logged', async () => {
    const { simulated, pass, reported } = await start(denyAll);
    const ports = Array.from({ length: 12 }, (_, at) => at + 1);
    simulated.refused = refused(...ports.map((port) => connection(port)));
    const logged = await pass();
    expect(logged).toHaveLength(11);
    expect(logged.at(-1)).toEqual({
      ...{ level: 'info', message: 'the rules of the network refused more connections' },
      ...{ interface: 'cpn0', more: 2 },
    });
    expect(reported).toEqual([ports]);
    simulated.refused = refused(connection(99));
    expect(await pass(59)).toEqual([]);
    expect(await pass(1)).toMatchObject([{ port: 99 }]);
  });

  it('that cannot be read are one warning, until they can', async () => {
    const { simulated, pass } = await start(denyAll);
    simulated.refused = new CommandFailed('nft', 1, 'no');
    expect(await pass()).toMatchObject([{ level: 'warn', message: 'refused packets cannot be read' }]);
    expect(await pass()).toEqual([]);
    simulated.refused = null;
    expect(await pass()).toMatchObject([{ level: 'info', message: 'refused packets can be read again' }]);
  });

  it('are not read in an open network, nor while the network is down', async () => {
    const { simulated, listener, pass } = await start();
    simulated.refused = new CommandFailed('nft', 1, 'no');
    expect(await pass()).toEqual([]);
    await listener.onPass(passOf(null));
    expect(simulated.logged).toEqual([]);
  });
});
