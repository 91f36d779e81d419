import { expect, vi } from 'vitest';
import { ChangeNotifier } from '../../../src/control-plane/push/change-notifier.ts';
import { enroll, makeKey, makeNetwork, openPlane, type Plane, type Reply, withDatabase } from '../harness.ts';

export const long = 'wait=45';

/** A control plane that the caller closes, its notifier, and its owner's session. */
export async function openWaiting() {
  const notifier = new ChangeNotifier();
  const plane = await openPlane({ notifier });
  return { plane, notifier, token: await plane.signIn('owner') };
}
export type Waiting = Awaited<ReturnType<typeof openWaiting>>;

/** A text with the ETag of a revision in place of each `"N"`; of one that never was, an ETag that names none. */
export async function tagged(plane: Pick<Plane, 'dataDir'>, network: number, text: string): Promise<string> {
  const parts = text.split(/"(\d+)"/);
  const tags = parts.map(async (part, index) => {
    if (index % 2 === 0) return part;
    const key = `${plane.dataDir} ${network} ${part}`;
    const nonce = nonces.get(key) ?? (await readNonce(plane.dataDir, network, Number(part)));
    if (nonce !== 'none') nonces.set(key, nonce);
    return `"${part}-${nonce}"`;
  });
  return (await Promise.all(tags)).join('');
}

const nonces = new Map<string, string>();

async function readNonce(dataDir: string, network: number, revision: number): Promise<string> {
  const row = await withDatabase(dataDir, (db) =>
    db
      .selectFrom('changes')
      .select('nonce')
      .where('network_id', '=', network)
      .where('revision', '=', revision)
      .executeTakeFirst(),
  );
  return row?.nonce ?? 'none';
}

/** An ETag without its nonce. */
export function untagged(etag: string | null): string | null {
  return etag?.replace(/-[\w-]+"$/, '"') ?? null;
}

/** Requests another revision than this one, as the owner unless another token is given. */
export async function read(on: Waiting, network: number, revision: number | null, prefer: string, token = on.token) {
  const named = revision === null ? null : await tagged(on.plane, network, `"${revision}"`);
  const headers = { prefer, ...(named !== null && { 'if-none-match': named }) };
  return on.plane.call('GET', `/api/networks/${network}`, { token, headers });
}

/** Passes once so many wait for the network. */
export async function untilWaiting({ notifier }: Waiting, network: number, count = 1): Promise<void> {
  await vi.waitFor(() => expect(notifier.count(network)).toBe(count), { timeout: 20_000, interval: 5 });
}

/** What a reply says of the revision. */
export function outcome({ status, headers, body }: Reply) {
  return [status, untagged(headers.get('etag')), headers.get('preference-applied'), body?.data?.revision];
}

export const unchanged = (revision: number, seconds: number) => [304, `"${revision}"`, `wait=${seconds}`, undefined];
export const changed = (revision: number, seconds = 45) => [200, `"${revision}"`, `wait=${seconds}`, revision];

/** A network at revision 2 with one peer. */
export async function makeOffice({ plane, token }: { plane: Plane; token: string }) {
  const network = await makeNetwork(plane, token);
  const key = await makeKey(plane, token, network);
  const { peer, access_token } = (await enroll(plane, key)).body.data;
  return { network, key, peer: peer.id as number, peerToken: access_token as string };
}
