import { expect, it } from 'vitest';
import { joinNetwork } from '../../../src/app/join/join.ts';
import { readStatus } from '../../../src/app/status/status.ts';
import { statusToJson, statusToText } from '../../../src/cli/output/show-status.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { remedyOfRefused } from '../../../src/core/routing/route-report.ts';
import { dialled, options, peer, prefix } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';

const linkLocal = prefix('169.254.7.0/24');
const tunnelPrefixes = prefix('10.77.0.128/25');
const pieces = [prefix('20.0.0.0/7'), prefix('24.0.0.0/5'), prefix('32.0.0.0/6')];

it('a join and cpn status report the routes that are left out, the reason and the remedy', async () => {
  const connector = peer(2, { type: 'connector', endpoint: dialled(2) });
  const map = mapAt('"1"', [connector], { routes: [linkLocal, tunnelPrefixes, ...pieces] });
  const simulated = await SimulatedHost.with(joinedTo(map));
  await simulated.tools.store.forget('cpn0', []);
  simulated.service.onEnroll = ({ publicKey, name }) => {
    const self = peer(9, { publicKey, name });
    return { peer: self, map: { ...map, peers: [self, connector] }, accessToken: new Secret('cpp_new') };
  };
  const warnings: string[] = [];
  await joinNetwork(
    { ...simulated.tools, warn: (text) => void warnings.push(text) },
    {
      ...{ token: new Secret('cpn_new'), service: joinedTo(map).service, name: 'host', type: 'origin', endpoint: null },
      ...{ interface: null, options, named: new Set(), networkSecret: null, personalToken: null },
      ...{ isUnattended: false, handshakeTimeoutMs: 0 },
    },
  );
  const remedy = 'if this is intended, "cpn set cpn0 --allow-route 169.254.7.0/24" accepts it';
  expect(warnings).toContain(`169.254.7.0/24 does not lead into cpn0: it overlaps link-local addresses; ${remedy}`);
  expect(warnings).toContain('10.77.0.128/25 does not lead into cpn0: it lies within 10.77.0.0/24, the network itself');

  const [seen] = await readStatus(simulated.tools);
  if (seen === undefined) throw new Error('nothing was joined');
  expect(statusToText(seen, simulated.tools.now())).toContain(`refused  overlaps link-local addresses; ${remedy}`);
  expect(statusToJson(seen).routes).toContainEqual({
    ...{ prefix: linkLocal, via: 'peer-2', state: 'refused', reason: 'overlaps link-local addresses' },
  });
  for (const piece of pieces) {
    const reason = expect.stringMatching(/are 7 % of the IPv4 internet/);
    expect(statusToJson(seen).routes).toContainEqual({ prefix: piece, via: 'peer-2', state: 'refused', reason });
  }
});

it('the remedy of a route that is not accepted is to accept routes', () => {
  const remedy = remedyOfRefused({ prefix: linkLocal, reason: 'not accepted' }, 'cpn0');
  expect(remedy).toBe('"cpn set cpn0 --accept-routes" accepts it');
});
