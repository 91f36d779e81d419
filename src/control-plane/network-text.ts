import * as z from 'zod';
import { NetworkDelta } from '../contract/network.ts';
import { reply } from '../contract/reply.ts';
import { ownBytes } from './own-bytes.ts';
import type { Context } from './service/context.ts';
import { readDelta, readSince } from './service/network-delta.ts';
import { TextCache } from './text-cache.ts';
import { createTurns } from './turns.ts';
import { WrittenNetwork } from './written-network.ts';

/** A network, or what is different in it since an earlier revision, as the body of a reply. */
export interface NetworkText {
  /** That it shows; perhaps a later one than was asked for. */
  readonly revision: number;
  /** The revision since which it tells what is different; null for all of the network. */
  readonly base: number | null;
  readonly bytes: Buffer;
}

/** Which revision of which network is asked for, by somebody who was let in. */
export interface Asking {
  readonly id: number;
  readonly revision: number;
}

export interface NetworkTexts {
  /** The whole network. */
  whole(asking: Asking): Promise<NetworkText>;
  /** What is different since `base`; null where that cannot be told. */
  delta(asking: Asking, base: number): Promise<NetworkText | null>;
}

const keptTextBytes = 8 * 1024 * 1024;
const keptBytes = 32 * 1024 * 1024;
const untold: NetworkText = { revision: 0, base: null, bytes: Buffer.alloc(0) };
const writtenDelta = reply(NetworkDelta);

/** Makes each text once for all who ask for it, whom somebody else let in; a whole one out of the one before, where that is there. */
export function createNetworkTexts(context: Context): NetworkTexts {
  const texts = new TextCache<NetworkText>(keptTextBytes);
  const write = createWriting(context);
  return {
    whole: ({ id, revision: asked }) => texts.get(id, asked, 'whole', (revision) => write({ id, revision })),
    delta: async ({ id, revision }, base) => {
      const text = await texts.get(id, revision, `since ${base}`, async () => {
        const delta = await readDelta(context, id, base);
        if (!delta) return untold;
        const bytes = ownBytes(JSON.stringify(z.encode(writtenDelta, { data: delta })));
        return { revision: delta.revision, base, bytes };
      });
      return text === untold ? null : text;
    },
  };
}

/** Writes whole networks. Those that were written last stay, up to so many bytes, and cost only what changed the next time. */
function createWriting(context: Context): (asking: Asking) => Promise<NetworkText> {
  const written = new Map<number, WrittenNetwork>();
  const takeTurn = createTurns();
  let kept = 0;
  const forget = (id: number, network: WrittenNetwork) => {
    if (written.delete(id)) kept -= network.size();
  };
  const keep = (id: number, network: WrittenNetwork) => {
    written.set(id, network);
    kept += network.size();
    for (const [oldest, other] of written) {
      // The last one stays however large it is: it is the one that is being asked for.
      if (kept <= keptBytes || oldest === id) return;
      forget(oldest, other);
    }
  };
  return ({ id, revision }) =>
    takeTurn(String(id), async () => {
      let network = written.get(id);
      // Until it is right again nobody has it: what fails half-way is written anew.
      if (network) forget(id, network);
      if (!network || network.revision < revision) network = await bringUpToDate(context, id, network);
      const bytes = network.bytes();
      keep(id, network);
      return { revision: network.revision, base: null, bytes };
    });
}

async function bringUpToDate(context: Context, id: number, known: WrittenNetwork | undefined): Promise<WrittenNetwork> {
  const { base, peers, removed, ...summary } = await readSince(context, id, known?.revision ?? null);
  if (!known || base === null) return new WrittenNetwork(summary, peers);
  known.update(summary, peers, removed);
  return known;
}
