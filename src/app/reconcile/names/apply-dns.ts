import { CpnError } from '../../../core/errors/index.ts';
import { peerDomain } from '../../../core/names/hosts-block.ts';
import { assignLabels } from '../../../core/names/hosts-label.ts';
import { formatServer } from '../../../core/names/split-dns.ts';
import { revertOf } from '../../../core/reconcile/plan-dns.ts';
import type { SetDns, Step } from '../../../core/reconcile/step.ts';
import type { Joined, RefusedDns } from '../../../store/state/state.ts';
import type { Tools } from '../../tools.ts';
import { neededNames, resolveDeadline } from './resolve-names.ts';

/** Limits the queries of a network with many endpoint names. */
const mostNames = 8;
/** Milliseconds in which a name must resolve again, and between two attempts. */
const withinMs = 10_000;
const pauseMs = 250;

/** What became of a step that sets DNS servers. */
export interface DnsOutcome {
  /** Why the settings are not used; null if they are. */
  readonly refused: RefusedDns | null;
  /** True if the settings were removed again. Otherwise refused settings were never read. */
  readonly isReverted: boolean;
}

/**
 * Sets the DNS servers of the network's domains, and keeps them only if the names that this host
 * needs for the tunnel still resolve. Otherwise removes them.
 */
export async function applyDns(
  tools: Pick<Tools, 'host' | 'now' | 'monotonic' | 'sleep' | 'warn'>,
  state: Joined,
  step: Step & SetDns,
): Promise<DnsOutcome> {
  const needed = await findResolving(tools, neededNames(state).slice(0, mostNames));
  const { servers, domains } = step.dns;
  const at = tools.now().toISOString();
  try {
    await tools.host.apply(step);
  } catch (error) {
    // The resolver restarted twice: it must not do so in each pass.
    if (step.files === undefined || !(error instanceof CpnError)) throw error;
    tools.warn(error.message);
    return { refused: { servers, domains, lost: [], failure: error.message, at }, isReverted: false };
  }
  const lost = await findLost(tools, needed);
  if (lost.length === 0) {
    const failure = step.files ? await findUnused(tools, state, step) : null;
    if (failure === null) return { refused: null, isReverted: false };
    await tools.host.apply(revertOf(step));
    tools.warn(failure);
    return { refused: { servers, domains, lost, failure, at }, isReverted: true };
  }
  await tools.host.apply(revertOf(step));
  tools.warn(
    `the DNS servers of ${step.link} were removed: with ${servers.map(formatServer).join(', ')}, ${lost.join(', ')} did not resolve`,
  );
  return { refused: { servers, domains, lost, at }, isReverted: true };
}

/** The file may not be what the program reads; null if this host resolves its own name by it. */
async function findUnused(
  tools: Pick<Tools, 'host' | 'monotonic' | 'sleep'>,
  { membership: { map, peer }, labels: held }: Joined,
  { dns: { domains }, files }: SetDns,
): Promise<string | null> {
  const apex = domains.find((domain) => domain.endsWith(`.${peerDomain}`));
  const [label] = assignLabels(map.peers, held).find((each) => each.peer === peer.id)?.labels ?? [];
  if (apex === undefined || label === undefined) return null;
  const lost = await findLost(tools, [`${label}.${apex}`]);
  return lost.length === 0 ? null : `${files?.program} did not use its new file: ${lost[0]} does not resolve`;
}

async function findResolving({ host }: Pick<Tools, 'host'>, names: readonly string[]): Promise<readonly string[]> {
  const found = await Promise.all(names.map((name) => host.resolve(name, resolveDeadline)));
  return names.filter((_, index) => (found[index]?.length ?? 0) > 0);
}

/** The names that do not resolve again in time. */
async function findLost(
  tools: Pick<Tools, 'host' | 'monotonic' | 'sleep'>,
  names: readonly string[],
): Promise<readonly string[]> {
  const deadline = tools.monotonic() + withinMs / 1000;
  let left = names;
  for (;;) {
    const resolving = new Set(await findResolving(tools, left));
    left = left.filter((name) => !resolving.has(name));
    if (left.length === 0 || tools.monotonic() >= deadline) return left;
    await tools.sleep(pauseMs);
  }
}
