/**
 * Runs inside a simulated host, whose folders are in its environment: for each line of its input,
 * which is a number, a pass as a daemon makes it, by a map in which every peer but the last has
 * changed. Answers `changed`, how many objects, and the milliseconds.
 *
 * @module
 */
import { randomBytes } from 'node:crypto';
import { createInterface } from 'node:readline';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { openTools } from '../../../src/cli/context.ts';
import { Input } from '../../../src/cli/input/input.ts';
import { parsePublicKey } from '../../../src/core/crypto/keys.ts';
import type { NetworkMap, Peer } from '../../../src/core/map/model.ts';
import { parsePrefix } from '../../../src/core/net/cidr.ts';
import type { Joined } from '../../../src/store/state/state.ts';

const tools = await openTools(new Input({}, {}, process.env), 'daemon');
for await (const line of createInterface({ input: process.stdin })) {
  const map = change(((await tools.store.read('cpn0')) as Joined).membership.map, Number(line));
  const begun = performance.now();
  const pass = await passNetwork(tools, 'cpn0', { ...noUpdate, map }, { withinMs: 20_000 });
  const changed = pass?.changes.length ?? 0;
  process.stdout.write(`changed ${changed} objects in ${Math.round(performance.now() - begun)} ms\n`);
}
process.exit();

/** The first is this host, and the last the peer of the measured tunnel. */
function change(map: NetworkMap, round: number): NetworkMap {
  const [self, ...rest] = map.peers;
  const watched = rest.pop();
  if (self === undefined || watched === undefined) throw new Error('the network has no two peers');
  const others = rest.map((peer, index) => changePeer(peer, index, round));
  const routes = others.flatMap((peer) => peer.routes ?? []);
  return { ...map, revision: `"round ${round}"`, routes, peers: [self, ...others, watched] };
}

/** Another endpoint and another route for each; for every tenth another key too. */
function changePeer(peer: Peer, index: number, round: number): Peer {
  const { endpoint, publicKey } = peer;
  const second = 128 + (round % 64);
  return {
    ...peer,
    endpoint: endpoint && { ...endpoint, port: 20_000 + round },
    publicKey: index % 10 === 0 ? parsePublicKey(randomBytes(32).toString('base64')) : publicKey,
    routes: [parsePrefix(`10.${second}.${index >> 4}.${(index & 15) << 4}/28`)],
  };
}
