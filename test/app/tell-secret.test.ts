import { describe, expect, it } from 'vitest';
import { reconcileNetworks } from '../../src/app/reconcile.ts';
import { NetworkWatch } from '../../src/app/run/network-watch.ts';
import { survey } from '../../src/app/survey.ts';
import { tellSecret } from '../../src/app/tell-secret.ts';
import { Unreachable } from '../../src/core/errors.ts';
import { tagOf } from '../../src/core/network-secret.ts';
import { Secret } from '../../src/core/secret.ts';
import { network, peer } from '../core/samples.ts';
import { eventually } from '../lab/eventually.ts';
import { answerWith, Desk, joinedTo, mapAt } from './desk.ts';

const networkSecret = new Secret(Buffer.alloc(32, 7).toString('base64'));
const tag = tagOf(networkSecret);
const map = mapAt('"1"', [peer(2)]);
const state = joinedTo(map, { networkSecret });

async function start(): Promise<Desk> {
  const desk = await Desk.with(state);
  desk.answers = [answerWith(map)];
  return desk;
}

describe('the tag of the network secret', () => {
  it('is told by a pass, and by the daemon, where the map does not list it', async () => {
    const desk = await start();
    expect(await reconcileNetworks(desk.tools)).toMatchObject([{ failure: null, unsynced: null }]);
    expect(desk.announced).toEqual([tag]);
    const watch = new NetworkWatch(desk.tools, 'cpn0', { interval: 30, confirmMs: 20_000 }, () => {});
    await watch.note({ survey: await survey(desk.tools, state), changes: [], isDrift: true });
    await eventually('the daemon tells it', () => desk.announced.length === 2);
  });

  it('that cannot be told fails nothing, and is warned of', async () => {
    const desk = await start();
    const told: string[] = [];
    desk.announces = () => {
      throw new Unreachable('https://x', 'refused', { delivered: false, heard: true, retryAfterMs: null });
    };
    const tools = { ...desk.tools, warn: (text: string) => void told.push(text) };
    expect(await reconcileNetworks(tools)).toMatchObject([{ failure: null, unsynced: null }]);
    expect(told).toEqual(['the control plane at https://x is out of reach: refused']);
    desk.announces = () => false;
    expect(await tellSecret(tools, state)).toBe('unknown');
    await reconcileNetworks(tools);
    expect(told).toHaveLength(1);
  });

  it('is asked of nobody without a token, nor for a host that the map has not', async () => {
    const desk = await start();
    const { membership, ...rest } = state;
    expect(await tellSecret(desk.tools, { ...rest, membership: { ...membership, accessToken: null } })).toBeNull();
    expect(await tellSecret(desk.tools, joinedTo(network([peer(2)]), { networkSecret }))).toBeNull();
    expect(desk.patience).toBeUndefined();
  });
});
