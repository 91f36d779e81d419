import { describe, expect, it } from 'vitest';
import { reconcileNetworks } from '../../src/app/networks/reconcile.ts';
import { evaluateNetwork } from '../../src/app/reconcile/evaluate-network.ts';
import { reportSecret } from '../../src/app/report-secret.ts';
import { SecretListener } from '../../src/app/run/listeners/secret-listener.ts';
import { tagOf } from '../../src/core/crypto/network-secret.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { Unreachable } from '../../src/core/errors/index.ts';
import { network, peer } from '../core/samples.ts';
import { eventually } from '../lab/eventually.ts';
import { joinedTo, mapAt } from './joined-state.ts';
import { passOf } from './run/pass-of.ts';
import { SimulatedHost } from './simulated-host.ts';
import { answerWith } from './simulated-service.ts';

const networkSecret = new Secret(Buffer.alloc(32, 7).toString('base64'));
const tag = tagOf(networkSecret);
const map = mapAt('"1"', [peer(2)]);
const state = joinedTo(map, { networkSecret });

async function start(): Promise<SimulatedHost> {
  const simulated = await SimulatedHost.with(state);
  simulated.service.mapReplies = [answerWith(map)];
  return simulated;
}

describe('the tag of the network secret', () => {
  it('is reported by a pass, and by the daemon, when the map does not list it', async () => {
    const simulated = await start();
    expect(await reconcileNetworks(simulated.tools)).toMatchObject([{ failure: null, unsynced: null }]);
    expect(simulated.service.announcedTags).toEqual([tag]);
    new SecretListener(simulated.tools, 'cpn0').onPass(passOf(await evaluateNetwork(simulated.tools, state)));
    await eventually('the daemon reports it', () => simulated.service.announcedTags.length === 2);
  });

  it('fails nothing when the report fails, and warns', async () => {
    const simulated = await start();
    const warnings: string[] = [];
    simulated.service.onSecretTag = () => {
      throw new Unreachable('https://x', 'refused', { delivered: false, heard: true, retryAfterMs: null });
    };
    const tools = { ...simulated.tools, warn: (text: string) => void warnings.push(text) };
    expect(await reconcileNetworks(tools)).toMatchObject([{ failure: null, unsynced: null }]);
    expect(warnings).toEqual(['the control plane at https://x is unreachable: refused']);
    simulated.service.onSecretTag = () => false;
    expect(await reportSecret(tools, state)).toBe('unknown');
    await reconcileNetworks(tools);
    expect(warnings).toHaveLength(1);
  });

  it('is not reported without a token, nor for a host that the map does not list', async () => {
    const simulated = await start();
    const { membership, ...rest } = state;
    expect(
      await reportSecret(simulated.tools, { ...rest, membership: { ...membership, accessToken: null } }),
    ).toBeNull();
    expect(await reportSecret(simulated.tools, joinedTo(network([peer(2)]), { networkSecret }))).toBeNull();
    expect(simulated.service.connectOptions).toBeUndefined();
  });
});
