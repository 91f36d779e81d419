import { CpnError } from '../../../core/errors/index.ts';
import type { EchoRequest } from '../../../core/health/path-mtu.ts';
import {
  type AttemptOptions,
  additionRate,
  advanceAttempt,
  beginAttempt,
  trialKeepalive,
} from '../../../core/paths/attempt.ts';
import type { Attempt, ProbeResult, ProvenBy, TriedCandidate, TryMessage } from '../../../core/paths/attempt-state.ts';
import { listTried, type TriedRecord } from '../../../core/paths/path-record.ts';
import { pauseFor } from '../../../core/util/backoff.ts';
import type { HostTools, Tools } from '../../tools.ts';
import { readTraffic } from '../health/renew-peers.ts';
import { type PathPeer, removeTrial, renewForTrial } from './path-peer.ts';

/** Bytes of a packet that passes on every path. */
const smallProbe = 84;
const probeMs = 500;

/** How an attempt ended: the path is proven, or these candidates did not give one. */
export type AttemptResult =
  | { readonly provenBy: ProvenBy; readonly tried: readonly TriedRecord[] }
  | { readonly provenBy: null; readonly tried: readonly TriedCandidate[] };

export interface AttemptRun extends Omit<AttemptOptions, 'now' | 'canProbe'> {
  readonly link: string;
  /** This host's probe address; null without IPv6. */
  readonly probesFrom: NonNullable<EchoRequest['from']> | null;
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
  { link, mtu, additions, probesFrom, ...options }: AttemptRun,
  signal: AbortSignal,
): Promise<AttemptResult> {
  const now = () => tools.monotonic() * 1000;
  let attempt: Attempt = beginAttempt(message, { ...options, canProbe: probesFrom !== null, now: now() });
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
        if (action.do === 'prove') return { provenBy: action.by, tried: listTried(attempt, entry?.endpoint ?? null) };
        if (action.do === 'probe') probing = probePath(tools, peer, probesFrom, mtu);
        if (action.do === 'renew') {
          if (action.endpoint !== null) additions.push(now());
          additions.splice(0, additions.length - additionRate.most);
          await tools.host.apply(renewForTrial(link, peer, action.endpoint, trialKeepalive));
        }
        if (action.do === 'give-up') {
          await tools.host.apply(removeTrial(link, peer));
          return { provenBy: null, tried: action.tried };
        }
      }
      if (advanced.nextAt === null) return notTried;
      const rest = tools.sleep(Math.max(0, advanced.nextAt - now()), signal);
      probe = await (probing === null
        ? rest.then(() => undefined)
        : Promise.race([probing, rest.then(() => undefined)]));
      if (probe !== undefined) probing = null;
      signal.throwIfAborted();
    }
  } catch (error) {
    await tools.host.apply(removeTrial(link, peer)).catch(() => {});
    if (error instanceof CpnError) return notTried;
    throw error;
  }
}

const notTried: AttemptResult = { provenBy: null, tried: [] };

/** Sends a small and a full-size echo over the path. */
async function probePath(
  { host }: HostTools,
  { probeAddress }: PathPeer,
  from: NonNullable<EchoRequest['from']> | null,
  mtu: number,
): Promise<ProbeResult> {
  if (!host.probeSize || from === null) return 'none';
  try {
    const [small, full] = await Promise.all(
      [smallProbe, mtu].map((bytes) => host.probeSize?.(probeAddress, { bytes, count: 1, from }, probeMs) ?? false),
    );
    return full ? 'full' : small ? 'small' : 'none';
  } catch (error) {
    if (error instanceof CpnError) return 'none';
    throw error;
  }
}
