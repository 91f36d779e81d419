import { expect, test } from 'vitest';
import {
  mostMessages,
  mostProbed,
  type PeerMessage,
  type PeerMessageKind,
  peerMessageKinds,
} from '../../../src/contract/network.ts';
import type { PeerCaller } from '../../../src/control-plane/domain/caller.ts';
import { type Inbox, type MessageBatch, PeerMessages } from '../../../src/control-plane/push/peer-messages.ts';
import { now, withRows } from '../store/stored-rows.ts';

const probe = (...peers: number[]): PeerMessage => ({ kind: 'probe', data: { peers } });
const observe = (...peers: number[]): PeerMessage => ({ kind: 'observe', data: { peers } });
const returnOf = (peer: number): PeerMessage => ({ kind: 'return', data: { peer } });
const switchOf = (ms: number): PeerMessage => ({ kind: 'switch', data: { peer: 1, attempt: 7, switch_in_ms: ms } });
const tryOf = (ms: number): PeerMessage => ({
  kind: 'try',
  data: { peer: 1, attempt: 7, endpoints: ['192.0.2.1:51820'], start_in_ms: ms, first: true },
});

/** The messages of a network with two hosts, and the time of its database. */
async function withHosts(
  work: (on: {
    readonly messages: PeerMessages;
    readonly hosts: readonly [PeerCaller, PeerCaller];
    readonly advance: (ms: number) => void;
    /** Each in a transaction of its own. */
    readonly send: (to: PeerCaller, ...messages: PeerMessage[]) => Promise<void>;
    readonly sendAtOnce: (...messages: [PeerCaller, PeerMessage][]) => Promise<void>;
    /** The messages of a process that starts now. */
    readonly restarted: () => Promise<PeerMessages>;
    readonly open: (host: PeerCaller, ...kinds: PeerMessageKind[]) => Inbox;
    /** Reads and acknowledges. */
    readonly take: (host: PeerCaller, ...kinds: PeerMessageKind[]) => Promise<readonly PeerMessage[]>;
    /** True if other messages wait. */
    readonly acknowledge: (host: PeerCaller, batch: MessageBatch) => Promise<boolean>;
  }) => Promise<void>,
): Promise<void> {
  await withRows(async ({ db, network, addPeer }) => {
    let at = now;
    const context = { db, announce: async () => {}, readTime: async () => new Date(at) };
    const messages = new PeerMessages(context);
    const restarted = async () => {
      const later = new PeerMessages(context);
      await later.restore();
      return later;
    };
    const open = (host: PeerCaller, ...kinds: PeerMessageKind[]) => messages.open(host, { kinds, hasReceipts: true });
    const add = async () => ({ peerId: await addPeer() }) as PeerCaller;
    await work({
      messages,
      hosts: [await add(), await add()],
      advance: (ms) => {
        at += ms;
      },
      send: async ({ peerId }, ...each) => {
        for (const message of each) await messages.send(network, [[peerId, message]]);
      },
      sendAtOnce: (...each) =>
        messages.send(
          network,
          each.map(([{ peerId }, message]) => [peerId, message]),
        ),
      open,
      restarted,
      take: async (host, ...kinds) => {
        const batch = await open(host, ...kinds).read();
        await messages.acknowledge(host, `${batch.receipt}`);
        return batch.messages;
      },
      acknowledge: async (host, { receipt }) => {
        await messages.acknowledge(host, `${receipt}`);
        let waits = false;
        open(host, ...peerMessageKinds).subscribe(() => {
          waits = true;
        })();
        return waits;
      },
    });
  });
}

test('a message ends the waits of its host, and none of another host or of one that is over', () =>
  withHosts(async ({ open, hosts: [one, two], sendAtOnce }) => {
    const ended: string[] = [];
    const subscribe = (host: PeerCaller, name: string) => open(host, 'probe').subscribe(() => void ended.push(name));
    subscribe(one, 'first');
    subscribe(one, 'second');
    subscribe(two, 'over')();
    await sendAtOnce([one, probe(7)], [two, probe(7)]);
    expect(ended).toEqual(['first', 'second']);
    // One that waits already ends the next wait.
    subscribe(one, 'late');
    expect(ended).toEqual(['first', 'second', 'late']);
  }));

test('messages come again until there is a receipt, also after a reply on a connection that died', () =>
  withHosts(async ({ messages, open, hosts: [one, two], send, acknowledge }) => {
    const [dead, next] = [open(one, 'probe', 'return'), open(one, 'probe', 'return')];
    await send(one, probe(7), returnOf(8));
    const lost = await dead.read();
    const batch = await next.read();
    expect([lost.messages, batch]).toEqual([[probe(7), returnOf(8)], lost]);
    await messages.acknowledge(two, `${batch.receipt}`);
    await send(one, probe(9));
    expect((await next.read()).messages).toEqual([probe(7, 9), returnOf(8)]);
    expect(await acknowledge(one, batch)).toBe(true);
    expect((await next.read()).messages).toEqual([probe(9)]);
    expect(await acknowledge(one, await next.read())).toBe(false);
    expect(await next.read()).toEqual({ messages: [], receipt: null });
  }));

test('messages wait for a process that starts later, until they are too old', () =>
  withHosts(async ({ restarted, hosts: [one], send, advance }) => {
    await send(one, probe(7));
    const read = async () => {
      const later = await restarted();
      return (await later.open(one, { kinds: ['probe'], hasReceipts: true }).read()).messages;
    };
    expect(await read()).toEqual([probe(7)]);
    advance(15_001);
    expect(await read()).toEqual([]);
  }));

test('the messages of a host that states no receipts come once', () =>
  withHosts(async ({ messages, hosts: [one], send }) => {
    const open = () => messages.open(one, { kinds: ['return'], hasReceipts: false });
    const peers = Array.from({ length: mostMessages + 1 }, (_, index) => index + 1);
    await send(one, ...peers.map(returnOf));
    expect((await open().read()).messages).toEqual(peers.slice(0, mostMessages).map(returnOf));
    expect((await open().read()).messages).toEqual([returnOf(mostMessages + 1)]);
    expect((await open().read()).messages).toEqual([]);
  }));

test.each(['', 'none', '0', '-1', '1e0', '9'.repeat(16), 'x.1x', `${'0.'.repeat(500)}1`])(
  'the receipt %j deletes nothing',
  (receipt) =>
    withHosts(async ({ messages, open, hosts: [one], send }) => {
      await send(one, probe(7));
      await messages.acknowledge(one, receipt);
      expect((await open(one, 'probe').read()).messages).toEqual([probe(7)]);
    }),
);

test('a message of a kind that a host does not take ends none of its waits', () =>
  withHosts(async ({ open, hosts: [one], send, take }) => {
    const ended: string[] = [];
    const subscribe = (name: string, ...kinds: PeerMessageKind[]) =>
      open(one, ...kinds).subscribe(() => void ended.push(name));
    subscribe('of the version before', 'probe');
    await send(one, observe(7));
    subscribe('its next one', 'probe');
    expect([ended, await take(one, 'probe')]).toEqual([[], []]);
    subscribe('of this version', 'probe', 'observe');
    expect([ended, await take(one, 'probe', 'observe')]).toEqual([['of this version'], [observe(7)]]);
  }));

test.each([
  [0, true],
  [14_999, true],
  [15_001, false],
])('a message that is fetched after %i ms is delivered: %s', (ms, isDelivered) =>
  withHosts(async ({ hosts: [one], advance, send, take }) => {
    await send(one, probe(7));
    advance(ms);
    expect(await take(one, 'probe')).toEqual(isDelivered ? [probe(7)] : []);
  }),
);

test('a message that is too old ends no wait, at another process either', () =>
  withHosts(async ({ open, hosts: [one, two], advance, send, take }) => {
    await send(one, probe(7));
    await take(one, 'probe');
    await send(one, probe(8));
    advance(15_001);
    let isEnded = false;
    await send(two, probe(9));
    expect(await take(one, 'probe')).toEqual([]);
    open(one, 'probe').subscribe(() => {
      isEnded = true;
    });
    expect(isEnded).toBe(false);
  }));

test('messages come to their host alone, and the rest of too many in the next reply', () =>
  withHosts(async ({ open, hosts: [one, two], send, take }) => {
    const peers = Array.from({ length: mostMessages + 2 }, (_, index) => index + 1);
    await send(one, ...peers.map(returnOf));
    expect(await take(two, 'return')).toEqual([]);
    expect(await take(one, 'return')).toEqual(peers.slice(0, mostMessages).map(returnOf));
    let isEnded = false;
    open(one, 'return').subscribe(() => {
      isEnded = true;
    })();
    expect([isEnded, await take(one, 'return')]).toEqual([true, peers.slice(mostMessages).map(returnOf)]);
    expect(await take(one, 'return')).toEqual([]);
  }));

test('messages of one transaction come to both hosts, several to one host too', () =>
  withHosts(async ({ hosts: [one, two], sendAtOnce, take }) => {
    await sendAtOnce([one, returnOf(5)], [two, tryOf(500)], [one, tryOf(500)]);
    expect(await take(one, 'return', 'try')).toEqual([returnOf(5), tryOf(500)]);
    expect(await take(two, 'return', 'try')).toEqual([tryOf(500)]);
  }));

test('messages that name peers are joined by kind, with as many peers as one message may name', () =>
  withHosts(async ({ hosts: [one], send, take }) => {
    await send(one, observe(1, 2), probe(3), observe(2, 4), returnOf(1), probe(5), returnOf(2));
    const kinds = ['probe', 'observe', 'return'] as const;
    expect(await take(one, ...kinds)).toEqual([observe(1, 2, 4), probe(3, 5), returnOf(1), returnOf(2)]);
    const many = Array.from({ length: mostProbed }, (_, index) => index + 1);
    await send(one, probe(...many), probe(99), probe(100));
    expect(await take(one, ...kinds)).toEqual([probe(...many), probe(99, 100)]);
  }));

test('the moment that a message names counts from its delivery', () =>
  withHosts(async ({ hosts: [one], advance, send, take }) => {
    await send(one, tryOf(500), switchOf(300));
    advance(200);
    expect(await take(one, 'try', 'switch')).toEqual([tryOf(300), switchOf(100)]);
    await send(one, tryOf(500), switchOf(300));
    advance(400);
    expect(await take(one, 'try', 'switch')).toEqual([tryOf(100), switchOf(0)]);
    // The database's clock was set back.
    await send(one, switchOf(300));
    advance(-200);
    expect(await take(one, 'switch')).toEqual([switchOf(300)]);
  }));
