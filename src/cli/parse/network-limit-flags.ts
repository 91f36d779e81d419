import type { AdminService } from '../../api/admin-service.ts';
import { WrongUsage } from '../../core/errors/index.ts';
import type { AdminFeature } from '../../core/map/features.ts';
import type { Id } from '../../core/map/model.ts';
import { findNamed } from '../admin.ts';
import type { Flags } from '../input/flags.ts';
import type { Input } from '../input/input.ts';

export const networkLimitFlags: Flags = {
  network: { kind: 'list', value: 'NETWORK', summary: 'limit to this network, by id or name' },
};

export const allNetworksFlag: Flags = {
  'all-networks': { kind: 'switch', summary: 'lift the limit to networks' },
};

/** The networks of `--network`; undefined without that flag. */
export async function readNetworkLimit(
  service: AdminService,
  input: Input,
  feature: AdminFeature,
): Promise<number[] | undefined> {
  const named = input.list('network');
  if (named.length === 0) return undefined;
  await requireLimits(service, feature);
  const networks = await service.listNetworks();
  return named.map((name) => Number(findNamed(networks, name, 'network').id));
}

/** As {@link readNetworkLimit}; null with `--all-networks`. */
export async function readLimitChange(service: AdminService, input: Input): Promise<number[] | null | undefined> {
  if (!input.switch('all-networks')) return readNetworkLimit(service, input, 'user-networks');
  await requireLimits(service, 'user-networks');
  return null;
}

/** True if a flag changes the limit. @throws WrongUsage for flags that exclude each other */
export function changesLimit(input: Input): boolean {
  const [isLifted, isSet] = [input.switch('all-networks'), input.list('network').length > 0];
  if (isLifted && isSet) throw new WrongUsage('--network and --all-networks exclude each other; give one of them');
  return isLifted || isSet;
}

/** Refuses if the service does not describe limits: it would ignore them, and permit everything. */
async function requireLimits(service: AdminService, feature: AdminFeature): Promise<void> {
  if (await service.describes(feature)) return;
  throw new WrongUsage('this control plane cannot limit users and tokens to networks; leave out --network');
}

interface Limited {
  readonly networks?: readonly Id[] | null | undefined;
}

/** Formats limits by the names of their networks. Reads the networks only if there is a limit. */
export async function createLimitFormat(
  service: AdminService,
  limited: readonly Limited[],
): Promise<{ readonly isAny: boolean; readonly format: (limited: Limited) => string }> {
  const isAny = limited.some(({ networks }) => isLimit(networks));
  const names = new Map(isAny ? (await service.listNetworks()).map(({ id, name }) => [String(id), name]) : []);
  const format = ({ networks }: Limited) => {
    if (!isLimit(networks)) return 'all';
    return networks.length === 0 ? 'none' : networks.map((id) => names.get(String(id)) ?? id).join(', ');
  };
  return { isAny, format };
}

/** A service without limits has no such field. */
function isLimit(networks: Limited['networks']): networks is readonly Id[] {
  return networks !== undefined && networks !== null;
}
