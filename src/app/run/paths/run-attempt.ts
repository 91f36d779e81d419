import { CpnError } from '../../../core/errors/index.ts';
import {
  type AttemptOptions,
  additionRate,
  advanceAttempt,
  beginAttempt,
  trialKeepalive,
} from '../../../core/paths/attempt.ts';
import type {
  Attempt,
  AttemptAction,
  ProbeResult,
  ProvenBy,
  TriedCandidate,
  TryMessage,
} from '../../../core/paths/attempt-state.ts';
import { pauseFor } from '../../../core/util/backoff.ts';
import type { HostTools, Tools } from '../../tools.ts';
import { readTraffic } from '../health/renew-peers.ts';
import { type PathPeer, removeTrial, renewForTrial } from './path-peer.ts';

/** Bytes of a packet that passes on every path. */
const smallProbe = 84;
const probeMs = 500;

/** How an attempt ended: the path is proven, or these candidates did not give one. */
export type AttemptResult = { readonly provenBy: ProvenBy } | { readonly tried: readonly TriedCandidate[] };

export interface AttemptRun extends Omit<AttemptOptions, 'now'> {
  readonly link: string;
  /** The size of the largest packet in the tunnel, in bytes. */
  readonly mtu: number;
  /** Milliseconds at which peers were added with an endpoint, oldest first. */
  readonly additions: number[];
}

/**
 * Runs one attempt to its end. A path that is proven stays in WireGuard's table, without any packet
 * of the network; of a failed one, nothing stays.
 *
 * @throws the signal's reason
 */
export async function runAttempt(
  tools: HostTools & Pick<Tools, 'sleep' | 'monotonic'>,
  peer: PathPeer,
  message: TryMessage,
  { link, mtu, additions, ...options }: AttemptRun,
  signal: AbortSignal,
): Promise<AttemptResult> {
  const now = () => tools.monotonic() * 1000;
  let attempt: Attempt = beginAttempt(message, { ...options, now: now() });
  let probing: Promise<ProbeResult> | null = null;
  let probe: ProbeResult | undefined;
  try {
    for (;;) {
      const entry = (await readTraffic(tools, link)).get(peer.publicKey) ?? null;
      const isPaused = pauseFor(additions, now(), additionRate) > 0;
      const advanced = advanceAttempt(attempt, { now: now(), entry, isPaused, ...(probe && { probe }) });
      attempt = advanced.attempt;
      probe = undefined;
      for (const action of advanced.actions) {
        const result = endOf(action);
        if (result !== null && 'provenBy' in result) return result;
        if (action.do === 'probe') probing = probePath(tools, peer, link, mtu);
        if (action.do === 'renew') {
          if (action.endpoint !== null) additions.push(now());
          additions.splice(0, additions.length - additionRate.most);
          await tools.host.apply(renewForTrial(link, peer, action.endpoint, trialKeepalive));
        }
        if (result !== null) {
          await tools.host.apply(removeTrial(link, peer));
          return result;
        }
      }
      if (advanced.nextAt === null) return { tried: [] };
      const rest = tools.sleep(Math.max(0, advanced.nextAt - now()), signal);
      probe = await (probing === null
        ? rest.then(() => undefined)
        : Promise.race([probing, rest.then(() => undefined)]));
      if (probe !== undefined) probing = null;
      signal.throwIfAborted();
    }
  } catch (error) {
    await tools.host.apply(removeTrial(link, peer)).catch(() => {});
    if (error instanceof CpnError) return { tried: [] };
    throw error;
  }
}

function endOf(action: AttemptAction): AttemptResult | null {
  if (action.do === 'prove') return { provenBy: action.by };
  return action.do === 'give-up' ? { tried: action.tried } : null;
}

/** Sends a small and a full-size echo over the path. */
async function probePath(
  { host }: HostTools,
  { probeAddress }: PathPeer,
  link: string,
  mtu: number,
): Promise<ProbeResult> {
  if (!host.probeSize) return 'none';
  try {
    const [small, full] = await Promise.all(
      [smallProbe, mtu].map((bytes) => host.probeSize?.(probeAddress, { bytes, count: 1, link }, probeMs) ?? false),
    );
    return full ? 'full' : small ? 'small' : 'none';
  } catch (error) {
    if (error instanceof CpnError) return 'none';
    throw error;
  }
}
