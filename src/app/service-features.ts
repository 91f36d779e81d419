import type { PeerService } from '../api/service.ts';
import { CpnError, expectCpnError, Refused } from '../core/errors/index.ts';
import { type Feature, sameFeatures } from '../core/map/features.ts';
import type { State } from '../store/state/state.ts';
import type { ConnectOptions, KnownService, ServiceTools, Tools } from './tools.ts';

/** Reads a service's features; the last ones if that fails; none without a description. */
export async function readFeatures(
  tools: Pick<Tools, 'describe' | 'log'>,
  { service, features }: KnownService,
): Promise<readonly Feature[] | null> {
  try {
    return (await tools.describe(service, null))?.features ?? features;
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    tools.log.debug({ url: service.url, error: error.message }, 'the description of the service cannot be read');
    return error instanceof Refused ? (features ?? []) : features;
  }
}

/** Saves a service's features. Returns whether they changed. */
export async function saveFeatures(
  tools: Pick<Tools, 'store'>,
  link: string,
  features: readonly Feature[] | null,
): Promise<boolean> {
  const isOther = (state: State | null): state is State => state !== null && !sameFeatures(state.features, features);
  if (!isOther(await tools.store.read(link))) return false;
  return tools.store.lock(async () => {
    const state = await tools.store.read(link);
    if (!isOther(state)) return false;
    await tools.store.write({ ...state, features });
    return true;
  });
}

/**
 * Runs `work` with a client that uses the features of a network's service. The description is read
 * before if it never was, and afterwards if a described operation is missing. If the caller holds
 * the lock (`isLocked`), the features are not saved.
 *
 * @throws why the description cannot be read, if it never was
 */
export async function withExtensions<T>(
  tools: ServiceTools,
  state: KnownService & Pick<State, 'interface'>,
  { isLocked = false, ...patience }: ConnectOptions & { readonly isLocked?: boolean },
  work: (service: PeerService) => Promise<T>,
): Promise<T> {
  let features = state.features ?? (await readFirst(tools, state));
  let isAbsent = false;
  const onAbsent = () => {
    isAbsent = true;
  };
  try {
    return await work(await tools.connect({ ...state, features }, { ...patience, onAbsent }));
  } finally {
    if (isAbsent) features = (await readFeatures(tools, { ...state, features })) ?? features;
    if (!isLocked) await saveFeatures(tools, state.interface, features).catch(expectCpnError);
  }
}

async function readFirst(tools: Pick<Tools, 'describe'>, { service }: KnownService): Promise<readonly Feature[]> {
  try {
    return (await tools.describe(service, null))?.features ?? [];
  } catch (error) {
    if (error instanceof Refused) return [];
    throw error;
  }
}
