import { describe, expect, it } from 'vitest';
import { type AwaitedPeer, awaitHandshakes, findAwaitedPeers } from '../../../src/app/reconcile/await-handshakes.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { CommandFailed, Locked } from '../../../src/core/errors/index.ts';
import { parseEndpoint } from '../../../src/core/net/endpoint.ts';
import type { DesiredPeer } from '../../../src/core/wg-quick/parse.ts';
import { dialled, keyPair, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith } from '../simulated-service.ts';

const peers = [2, 3].map((number) => peer(number, { endpoint: dialled(number) }));
const map = mapAt('"1"', peers);
const known = 1_700_000_500;

/** A host with two peers, and a wait of `withinMs` for handshakes newer than `known` with both. */
async function startDesk(withinMs: number) {
  const simulated = await SimulatedHost.with(joinedTo(map));
  simulated.service.mapReplies = [answerWith(map)];
  await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 20_000 });
  simulated.steps.length = 0;
  const triggered: string[] = [];
  simulated.onHandshakeTrigger = (address) => void triggered.push(address);
  const entries = simulated.actual.device?.peers ?? [];
  const awaited = peers.flatMap((each): AwaitedPeer[] => {
    const wanted = entries.find(({ publicKey }) => publicKey === each.publicKey);
    return wanted ? [{ peer: each, wanted, latestHandshake: known }] : [];
  });
  let isLocked = () => false;
  const query = {
    link: 'cpn0',
    find: async (): Promise<readonly AwaitedPeer[]> => awaited,
    exclusively: async (work: () => Promise<void>) => {
      if (isLocked()) throw new Locked('/run/cpn/lock', '7', 'cpn');
      await work();
    },
  };
  const begun = simulated.seconds;
  return {
    ...{ simulated, triggered, query },
    lockWhile(test: () => boolean) {
      isLocked = test;
    },
    /** A peer completes a handshake at the given second of the wait. */
    answerAt(number: number, second: number, latestHandshake = known + second) {
      const { device } = simulated.tools.host;
      simulated.tools.host.device = async (link) => {
        if (simulated.seconds - begun >= second) simulated.updatePeer(number, { latestHandshake });
        return device(link);
      };
    },
    wait: async (signal?: AbortSignal) => {
      const first = await awaitHandshakes(simulated.tools, query, { withinMs, ...(signal && { signal }) });
      return { first: first?.id ?? null, took: simulated.seconds - begun };
    },
  };
}

describe('a wait for handshakes', () => {
  it('ends once all peers answered, and returns the first', async () => {
    const { answerAt, wait } = await startDesk(20_000);
    answerAt(2, 5);
    answerAt(3, 2);
    const { first, took } = await wait();
    expect(first).toBe(3);
    expect(took).toBeGreaterThanOrEqual(5);
    expect(took).toBeLessThan(6);
  });

  it.each([
    ['six seconds after the first answer', 20_000, 2, 8],
    ['at its timeout, if that is sooner', 4_000, 2, 4],
    ['at its timeout without an answer', 4_000, null, 4],
  ])('ends %s', async (_, withinMs, second, end) => {
    const { answerAt, wait } = await startDesk(withinMs);
    if (second !== null) answerAt(2, second);
    const { first, took } = await wait();
    expect(first).toBe(second === null ? null : 2);
    expect(took).toBeGreaterThanOrEqual(end);
    expect(took).toBeLessThan(end + 1);
  });

  it('does not count the handshake before, and of a peer that was added again counts any', async () => {
    const { simulated, answerAt, wait } = await startDesk(4_000);
    for (const number of [2, 3]) simulated.updatePeer(number, { latestHandshake: known });
    answerAt(3, 1, known - 3_600);
    expect((await wait()).first).toBe(3);
    expect(simulated.steps[0]).toMatchObject({ do: 'renew-peers', link: 'cpn0' });
  });

  it('adds peers again with the endpoint that WireGuard learned, else with that of the network', async () => {
    const { simulated, wait, triggered } = await startDesk(1_000);
    const learned = parseEndpoint('198.51.100.9:4000');
    simulated.updatePeer(2, { endpoint: learned as never });
    simulated.updatePeer(3, { endpoint: null });
    await wait();
    const [renewal] = simulated.steps;
    const renewed = renewal?.do === 'renew-peers' ? renewal.peers : [];
    expect(renewed.map(({ endpoint }) => endpoint)).toEqual([learned, dialled(3)]);
    expect(triggered.slice(0, 2)).toEqual(['10.77.0.2', '10.77.0.3']);
  });

  it('leaves the peers alone while a pass holds the lock, and tries again', async () => {
    const { simulated, lockWhile, answerAt, wait } = await startDesk(10_000);
    const begun = simulated.seconds;
    lockWhile(() => simulated.seconds - begun < 2);
    answerAt(2, 4);
    answerAt(3, 4);
    expect((await wait()).first).toBe(2);
    expect(simulated.steps.length).toBeGreaterThan(0);
  });

  it('fails with any other error', async () => {
    const { simulated, wait } = await startDesk(10_000);
    simulated.refusesStep = () => true;
    await expect(wait()).rejects.toBeInstanceOf(CommandFailed);
  });

  it('ends when the network goes down meanwhile, or its signal aborts', async () => {
    const down = await startDesk(10_000);
    const begun = down.simulated.seconds;
    const { find } = down.query;
    down.query.find = async () => (down.simulated.seconds - begun < 1 ? find() : []);
    down.simulated.tools.host.device = async () => null;
    expect((await down.wait()).took).toBeLessThan(2);
    const { wait } = await startDesk(10_000);
    expect(await wait(AbortSignal.abort())).toEqual({ first: null, took: 0 });
  });
});

describe('the peers that are to answer', () => {
  const wanted = (...listed: readonly { readonly publicKey: string }[]) =>
    listed.map(({ publicKey }) => ({ publicKey }) as DesiredPeer);
  const [two, three] = peers as [(typeof peers)[number], (typeof peers)[number]];
  const renewed = { ...two, publicKey: keyPair(22).publicKey };

  it.each<[string, Parameters<typeof findAwaitedPeers>, unknown]>([
    [
      'have their last handshake to compare with',
      [map, wanted(two, three), [{ publicKey: two.publicKey, peer: 2, latestHandshake: known }]],
      [{ peer: two, wanted: { publicKey: two.publicKey }, latestHandshake: known }],
    ],
    [
      'have none where their key changed since',
      [mapAt('"2"', [renewed]), wanted(renewed), [{ publicKey: two.publicKey, peer: 2, latestHandshake: known }]],
      [{ peer: renewed, wanted: { publicKey: renewed.publicKey }, latestHandshake: null }],
    ],
    [
      'are none whose key changed and whose id an earlier version did not note',
      [mapAt('"2"', [renewed]), wanted(renewed), [{ publicKey: two.publicKey, latestHandshake: known }]],
      [],
    ],
    [
      'are none that left the network, or that this host no longer dials',
      [
        mapAt('"2"', [three]),
        wanted(two),
        [two, three].map(({ publicKey, id }) => ({ publicKey, peer: id, latestHandshake: known })),
      ],
      [],
    ],
  ])('%s', (_, given, found) => {
    expect(findAwaitedPeers(...given)).toEqual(found);
  });
});
