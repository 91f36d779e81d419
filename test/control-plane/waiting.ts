import { expect, vi } from 'vitest';
import { Waiters } from '../../src/control-plane/waiters.ts';
import { enroll, makeKey, makeNetwork, openPlane, type Plane, type Reply } from './harness.ts';

export const long = 'wait=50';

/** A control plane that the caller closes, its waiters, and its owner's session. */
export async function openWaiting() {
  const waiters = new Waiters();
  const plane = await openPlane({ waiters });
  return { plane, waiters, token: await plane.signIn('owner') };
}
export type Waiting = Awaited<ReturnType<typeof openWaiting>>;

/** Asks for another revision than this one, as the owner unless a token says otherwise. */
export function read(on: Waiting, network: number, revision: number | null, prefer: string, token = on.token) {
  const headers = { prefer, ...(revision !== null && { 'if-none-match': `"${revision}"` }) };
  return on.plane.call('GET', `/api/networks/${network}`, { token, headers });
}

/** Passes once so many wait for the network. */
export async function untilWaiting({ waiters }: Waiting, network: number, count = 1): Promise<void> {
  await vi.waitFor(() => expect(waiters.count(network)).toBe(count), { timeout: 20_000, interval: 5 });
}

/** What a reply says of the revision. */
export function outcome({ status, headers, body }: Reply) {
  return [status, headers.get('etag'), headers.get('preference-applied'), body?.data?.revision];
}

export const unchanged = (revision: number, seconds: number) => [304, `"${revision}"`, `wait=${seconds}`, undefined];
export const changed = (revision: number, seconds = 50) => [200, `"${revision}"`, `wait=${seconds}`, revision];

/** A network at revision 2 with one peer. */
export async function makeOffice({ plane, token }: { plane: Plane; token: string }) {
  const network = await makeNetwork(plane, token);
  const key = await makeKey(plane, token, network);
  const { peer, access_token } = (await enroll(plane, key)).body.data;
  return { network, key, peer: peer.id as number, peerToken: access_token as string };
}
