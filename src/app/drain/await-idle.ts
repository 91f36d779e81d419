import { printable } from '../../core/errors/index.ts';
import { type Inflow, measureInflow } from '../../core/health/traffic.ts';
import type { Joined } from '../../store/state/state.ts';
import type { Tools } from '../tools.ts';

/** Seconds between two observations, and the number of consecutive quiet ones. */
const pause = 1;
const quietObservations = 3;

/**
 * Waits until no peer of a network sends more than the idle rate to this host.
 *
 * @param timeout seconds, after which it returns the peers that still send
 */
export async function awaitIdle(tools: Tools, state: Joined, timeout: number): Promise<readonly Inflow[]> {
  const deadline = tools.monotonic() + timeout;
  let before = await observePeers(tools, state);
  for (let quiet = 0; before !== null; ) {
    await tools.sleep(1000 * pause);
    const now = await observePeers(tools, state);
    if (now === null) break;
    const inflow = measureInflow(before.peers, now.peers, now.at - before.at);
    quiet = inflow.length === 0 ? quiet + 1 : 0;
    if (quiet === quietObservations || now.at >= deadline) return inflow;
    if (quiet === 0) {
      tools.progress(`${describeInflow(inflow, state)}; waiting up to ${Math.round(deadline - now.at)} s more`);
    }
    before = now;
  }
  return [];
}

export async function isUp(tools: Pick<Tools, 'host' | 'monotonic'>, state: Joined): Promise<boolean> {
  return (await observePeers(tools, state)) !== null;
}

export function describeInflow(inflow: readonly Inflow[], { interface: link, membership }: Joined): string {
  const names = new Map(membership.map.peers.map(({ publicKey, name }) => [publicKey, printable(name)]));
  const total = inflow.reduce((sum, { rate }) => sum + rate, 0);
  const first = inflow.slice(0, 3).map(({ publicKey }) => names.get(publicKey) ?? publicKey);
  const more = inflow.length > first.length ? ` and ${inflow.length - first.length} more` : '';
  return `${link} still receives ${(total / 1000).toFixed(1)} kB/s, from ${first.join(', ')}${more}`;
}

async function observePeers(tools: Pick<Tools, 'host' | 'monotonic'>, state: Joined) {
  const device = await tools.host.device(state.interface);
  return device && { peers: device.peers, at: tools.monotonic() };
}
