import { expect, test } from 'vitest';
import { mostMessages, type PeerMessage } from '../../../src/contract/network.ts';
import type { PeerCaller } from '../../../src/control-plane/domain/caller.ts';
import { PeerMessages } from '../../../src/control-plane/push/peer-messages.ts';
import { now, withRows } from '../store/stored-rows.ts';

const probe = (peer: number): PeerMessage => ({ kind: 'probe', data: { peers: [peer] } });

/** The messages of a network with two hosts, and the time of its database. */
async function withHosts(
  work: (on: {
    readonly messages: PeerMessages;
    readonly hosts: readonly [PeerCaller, PeerCaller];
    readonly advance: (ms: number) => void;
    readonly send: (to: PeerCaller, ...peers: number[]) => Promise<void>;
  }) => Promise<void>,
): Promise<void> {
  await withRows(async ({ db, network, addPeer }) => {
    let at = now;
    const messages = new PeerMessages({ db, announce: async () => {}, readTime: async () => new Date(at) });
    const add = async () => ({ peerId: await addPeer() }) as PeerCaller;
    await work({
      messages,
      hosts: [await add(), await add()],
      advance: (ms) => {
        at += ms;
      },
      send: async ({ peerId }, ...peers) => {
        for (const peer of peers) await messages.send(network, new Map([[peerId, probe(peer)]]));
      },
    });
  });
}

test('a message ends all waits of its host, and none of another host or of a request that is over', () =>
  withHosts(async ({ messages, hosts: [one, two], send }) => {
    const ended: string[] = [];
    const subscribe = (host: PeerCaller, name: string) =>
      messages.open(host, ['probe']).subscribe(() => void ended.push(name));
    subscribe(one, 'first');
    subscribe(one, 'second');
    subscribe(two, 'other');
    subscribe(one, 'over')();
    await send(one, 7);
    expect(ended).toEqual(['first', 'second']);
    // One that waits already ends the next wait.
    subscribe(one, 'late');
    expect(ended).toEqual(['first', 'second', 'late']);
  }));

test.each([
  [0, true],
  [14_999, true],
  [15_001, false],
])('a message that is fetched after %i ms is delivered: %s', (ms, isDelivered) =>
  withHosts(async ({ messages, hosts: [one], advance, send }) => {
    await send(one, 7);
    advance(ms);
    expect(await messages.open(one, ['probe']).take()).toEqual(isDelivered ? [probe(7)] : []);
  }),
);

test('a message that is too old ends no wait, at another process either', () =>
  withHosts(async ({ messages, hosts: [one, two], advance, send }) => {
    await send(one, 7);
    await messages.open(one, ['probe']).take();
    await send(one, 8);
    advance(15_001);
    let isEnded = false;
    await send(two, 9);
    expect(await messages.open(one, ['probe']).take()).toEqual([]);
    messages.open(one, ['probe']).subscribe(() => {
      isEnded = true;
    });
    expect(isEnded).toBe(false);
  }));

test('messages come once, to their host alone, the latest of too many', () =>
  withHosts(async ({ messages, hosts: [one, two], send }) => {
    const peers = Array.from({ length: mostMessages + 2 }, (_, index) => index + 1);
    await send(one, ...peers);
    expect(await messages.open(two, ['probe']).take()).toEqual([]);
    expect(await messages.open(one, ['probe']).take()).toEqual(peers.slice(2).map(probe));
    expect(await messages.open(one, ['probe']).take()).toEqual([]);
  }));
