import * as z from 'zod';
import { NetworkDelta } from '../contract/network.ts';
import { reply } from '../contract/reply.ts';
import { ownBytes } from './own-bytes.ts';
import { isFresh, type Kept, nextMoment, type Seen } from './seen.ts';
import type { Context } from './service/context.ts';
import { readDelta, readSince } from './service/network-delta.ts';
import type { Revision } from './store/revision.ts';
import { TextCache } from './text-cache.ts';
import { createTurns } from './turns.ts';
import { WrittenNetwork } from './written-network.ts';

/** A network, or what is different in it since an earlier revision, as the body of a reply. */
export interface NetworkText {
  /** That it shows; perhaps a later one than was asked for. */
  readonly revision: Revision;
  /** The revision since which it tells what is different; null for all of the network. */
  readonly base: Revision | null;
  readonly bytes: Buffer;
}

/** Which revision of which network is asked for, by somebody who was let in. */
export interface Asking {
  readonly id: number;
  readonly revision: Seen;
}

export interface NetworkTexts {
  /** The whole network. */
  whole(asking: Asking): Promise<NetworkText>;
  /** What is different since `base`; null where that cannot be told. */
  delta(asking: Asking, base: Revision): Promise<NetworkText | null>;
}

const keptTextBytes = 8 * 1024 * 1024;
const keptBytes = 32 * 1024 * 1024;
const untold: NetworkText = { revision: { revision: 0, nonce: '' }, base: null, bytes: Buffer.alloc(0) };
const writtenDelta = reply(NetworkDelta);

/** Makes each text once for all who ask for it, whom somebody else let in; a whole one out of the one before, where that is there. */
export function createNetworkTexts(context: Context): NetworkTexts {
  const texts = new TextCache<NetworkText>(keptTextBytes);
  const write = createWriting(context);
  return {
    whole: ({ id, revision: asked }) => texts.get(id, asked, 'whole', (revision) => write({ id, revision })),
    delta: async ({ id, revision }, base) => {
      const text = await texts.get(id, revision, `since ${base.revision}-${base.nonce}`, async () => {
        const since = await readDelta(context, id, base);
        if (!since) return untold;
        const bytes = ownBytes(JSON.stringify(z.encode(writtenDelta, { data: since.delta })));
        return { revision: since.at, base, bytes };
      });
      return text === untold ? null : text;
    },
  };
}

/** Writes whole networks. Those that were written last stay, up to so many bytes, and cost only what changed the next time. */
function createWriting(context: Context): (asking: Asking) => Promise<NetworkText> {
  const written = new Map<number, Written>();
  const takeTurn = createTurns();
  let kept = 0;
  const forget = (id: number, { network }: Written) => {
    if (written.delete(id)) kept -= network.size();
  };
  const keep = (id: number, each: Written) => {
    written.set(id, each);
    kept += each.network.size();
    for (const [oldest, other] of written) {
      // The last one stays however large it is: it is the one that is being asked for.
      if (kept <= keptBytes || oldest === id) return;
      forget(oldest, other);
    }
  };
  return ({ id, revision }) =>
    takeTurn(String(id), async () => {
      let known = written.get(id);
      // Until it is right again nobody has it: what fails half-way is written anew.
      if (known) forget(id, known);
      if (!known || !isFresh(known, revision)) known = await bringUpToDate(context, id, known);
      const bytes = known.network.bytes();
      keep(id, known);
      return { revision: known.revision, base: null, bytes };
    });
}

/** A network that was written. */
interface Written extends Kept {
  readonly network: WrittenNetwork;
}

async function bringUpToDate(context: Context, id: number, known: Written | undefined): Promise<Written> {
  const read = nextMoment();
  const { base, at: revision, delta } = await readSince(context, id, known?.revision ?? null);
  const { peers, removed, ...summary } = delta;
  if (!known || base === null) return { network: new WrittenNetwork(summary, peers), revision, read };
  known.network.update(summary, peers, removed);
  return { network: known.network, revision, read };
}
