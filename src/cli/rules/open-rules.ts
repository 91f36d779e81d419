import type { AdminService, NetworkRules } from '../../api/admin-service.ts';
import type { SetRules } from '../../contract/rules.ts';
import { expectCpnError, WrongUsage } from '../../core/errors/index.ts';
import type { Id } from '../../core/map/model.ts';
import { findTheNetwork, openAdmin } from '../admin.ts';
import type { Flags } from '../input/flags.ts';
import type { Input } from '../input/input.ts';
import { warn } from '../output/output.ts';
import type { EnforcementByPeer } from '../output/peer-table.ts';

/** The argument of commands for the rules of one network of the control plane. */
export const rulesNetwork = {
  usage: '[network]',
  summary: 'id or name of a network; default: the only one',
  // Completion offers nothing: the networks are those of the control plane.
  choices: { network: [] },
};

/** The network of commands with other arguments. */
export const networkFlag: Flags = {
  network: { kind: 'text', value: 'NETWORK', summary: 'id or name of the network, where there are several' },
};

/** Rules as a file has them. The time for a confirmation is a flag. */
export type FileRules = Omit<SetRules, 'confirm_within_seconds'>;

/** The part of the service's rules that a file has. */
export function toFileRules({ mode, rules, tests, require_enforcement }: FileRules | NetworkRules): FileRules {
  return { mode, rules: [...rules], tests: [...tests], require_enforcement };
}

export interface RuledNetwork {
  readonly service: AdminService;
  readonly network: Id;
}

/** Connects to the control plane, and finds the network. @throws WrongUsage without rules there */
export async function openRuledNetwork(input: Input, named: string | undefined): Promise<RuledNetwork> {
  const service = await openAdmin(input);
  if (!(await service.describes('network-rules'))) {
    throw new WrongUsage('this control plane does not support rules: every peer reaches every peer and route');
  }
  return { service, network: await findTheNetwork(service, named) };
}

/** What enforces the rules of a closed network. Null in an open one, and if the request fails. */
export async function readEnforcement(service: AdminService, network: Id): Promise<EnforcementByPeer> {
  if (!(await service.describes('network-rules'))) return null;
  try {
    const { rules } = await service.readRules(network);
    return rules.mode === 'open' ? null : new Map(rules.enforcement.map(({ peer, by }) => [String(peer.id), by]));
  } catch (error) {
    // The list of peers is useful without it.
    warn(expectCpnError(error).message);
    return null;
  }
}
