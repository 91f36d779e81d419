import type { PathSignals } from '../../../contract/paths.ts';
import { CpnError } from '../../../core/errors/index.ts';
import type { Joined } from '../../../store/state/state.ts';
import { accessOf } from '../../access.ts';
import { withExtensions } from '../../service-features.ts';
import type { Tools } from '../../tools.ts';

const patience = { deadlineMs: 5_000, attempts: 2 } as const;

/**
 * Sends what this host states about direct paths. Returns the milliseconds to the control plane and
 * back; null if nothing was sent, or without an answer: paths are an optimization, and the relay
 * works without them.
 */
export async function signalPaths(
  tools: Tools,
  state: Joined,
  signals: PathSignals,
  signal: AbortSignal,
): Promise<number | null> {
  const access = accessOf(state);
  if (access === null) return null;
  const start = tools.monotonic();
  try {
    const isSent = await withExtensions(tools, state, patience, (service) =>
      service.sendPathSignals(access.network, access.token, signals, signal),
    );
    return isSent ? (tools.monotonic() - start) * 1000 : null;
  } catch (error) {
    if (signal.aborted) return null;
    if (!(error instanceof CpnError)) throw error;
    tools.log.debug({ interface: state.interface, error: error.message }, 'direct paths could not be signalled');
    return null;
  }
}
