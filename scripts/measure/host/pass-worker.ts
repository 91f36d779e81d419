/**
 * Runs inside a simulated host, whose folders are in its environment: passes as a daemon makes
 * them, in one process, over a network that is up. Writes {@link PassTimes} as JSON.
 *
 * @module
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { openTools } from '../../../src/cli/context.ts';
import { Input } from '../../../src/cli/input/input.ts';
import { parsePublicKey } from '../../../src/core/crypto/keys.ts';
import type { NetworkMap } from '../../../src/core/map/model.ts';
import { parseAddress } from '../../../src/core/net/cidr.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { readChildrenTime, runsPerFigure } from './proc.ts';

export interface PassTimes {
  /** Milliseconds of each pass that added a peer. */
  readonly changes: readonly number[];
  /** Milliseconds of processor time of each pass that had nothing to do, its tools included. */
  readonly steady: readonly number[];
}

const warmUp = 3;
const rounds = 10;

const tools = await openTools(new Input({}, {}, process.env), 'daemon');
const changes: number[] = [];
for (let round = 0; round < warmUp + rounds; round += 1) {
  const map = withPeer(((await tools.store.read('cpn0')) as Joined).membership.map, round);
  const begun = performance.now();
  await passNetwork(tools, 'cpn0', { ...noUpdate, map }, { withinMs: 20_000 });
  if (round >= warmUp) changes.push(performance.now() - begun);
}
// A daemon that has nothing to do has had nothing to do for a while: what was written a moment ago
// is read again.
await delay(4000);
const steady: number[] = [];
for (let round = 0; round < warmUp + rounds; round += 1) {
  const before = spent();
  for (let pass = 0; pass < runsPerFigure; pass += 1) await passNetwork(tools, 'cpn0', noUpdate, { withinMs: 20_000 });
  if (round >= warmUp) steady.push((spent() - before) / runsPerFigure);
}
process.stdout.write(JSON.stringify({ changes, steady } satisfies PassTimes));
process.exit();

function withPeer(map: NetworkMap, round: number): NetworkMap {
  const [template] = map.peers;
  if (template === undefined) throw new Error('the network has no peer');
  const id = 60_000 + round;
  const peer = {
    ...{ ...template, id, name: `new-${round}`, address: parseAddress(`10.64.254.${round + 1}`) },
    ...{ publicKey: parsePublicKey(randomBytes(32).toString('base64')), endpoint: null },
  };
  return { ...map, revision: `"new ${round}"`, peers: [...map.peers, peer] };
}

/**
 * Milliseconds of processor time of this process and of the tools that it ran, or had a shell run.
 */
function spent(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000 + readChildrenTime(process.pid);
}
