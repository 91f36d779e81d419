import type { FastifyReply } from 'fastify';
import type { Caller } from '../caller.ts';
import type { Context } from '../service/context.ts';
import { readDelta } from '../service/network-delta.ts';
import { readNetwork } from '../service/networks.ts';
import { TextCache } from '../text-cache.ts';

/** A network, or what is different in it since an earlier revision, as the body of a reply. */
export interface NetworkText {
  /** That it shows; perhaps a later one than was asked for. */
  readonly revision: number;
  /** The revision since which it tells what is different; null for all of the network. */
  readonly base: number | null;
  readonly bytes: Buffer;
}

/** Who asks for which revision of which network. */
export interface Asking {
  readonly caller: Caller;
  readonly id: number;
  readonly revision: number;
  /** Turns what is to be told into the text of the reply with this status. */
  readonly write: (status: 200 | 226, data: object) => string;
}

export interface NetworkTexts {
  /** The whole network. */
  whole(asking: Asking): Promise<NetworkText>;
  /** What is different since `base`; null where that cannot be told. */
  delta(asking: Asking, base: number): Promise<NetworkText | null>;
}

const keptBytes = 32 * 1024 * 1024;
const untold: NetworkText = { revision: 0, base: null, bytes: Buffer.alloc(0) };

/** Makes each text once for all who ask for it, whom somebody else let in. */
export function createNetworkTexts(context: Context): NetworkTexts {
  const texts = new TextCache<NetworkText>(keptBytes);
  return {
    whole: (asking) =>
      texts.get(`${asking.id} ${asking.revision}`, async () => {
        const network = await readNetwork(context, asking.caller, asking.id);
        return { revision: network.revision, base: null, bytes: Buffer.from(asking.write(200, network)) };
      }),
    delta: async (asking, base) => {
      const text = await texts.get(`${asking.id} ${asking.revision} ${base}`, async () => {
        const delta = await readDelta(context, asking.caller, asking.id, base);
        return delta ? { revision: delta.revision, base, bytes: Buffer.from(asking.write(226, delta)) } : untold;
      });
      return text === untold ? null : text;
    },
  };
}

/** Writes by the schema that the route has for each status. */
export function writerOf(response: Pick<FastifyReply, 'code'>): Asking['write'] {
  return (status, data) => String((response.code(status) as FastifyReply).serialize({ data }));
}
