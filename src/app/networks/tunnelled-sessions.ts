import { expectCpnError } from '../../core/errors/index.ts';
import type { SshClient } from '../../core/host-state/actual.ts';
import { covers } from '../../core/net/cidr.ts';
import { findTunnelledSessions } from '../../core/routing/tunnelled-connections.ts';
import { listNames } from '../../core/util/list-names.ts';
import type { State } from '../../store/state/state.ts';
import { observeOptionsFor } from '../reconcile/observe-options.ts';
import { isJoined } from '../select.ts';
import type { Tools } from '../tools.ts';

/** Describes the SSH sessions that end if these networks go down; null without any. */
export async function describeSessionsAtStake(
  tools: Pick<Tools, 'host'>,
  states: readonly State[],
): Promise<string | null> {
  const sessions = await tools.host.sshClients();
  if (sessions.length === 0) return null;
  const ending = (await Promise.all(states.map((state) => findEnding(tools, state, sessions)))).flat();
  const clients = [...new Set(ending.map(({ address }) => address))];
  if (clients.length === 0) return null;
  const [subject, verbs] =
    clients.length === 1
      ? ['The SSH session', 'goes through the tunnel, and ends']
      : ['SSH sessions', 'go through the tunnel, and end'];
  return `${subject} from ${listNames(clients)} ${verbs}.`;
}

async function findEnding(
  tools: Pick<Tools, 'host'>,
  state: State,
  sessions: readonly SshClient[],
): Promise<readonly SshClient[]> {
  if (!isJoined(state)) return [];
  const { map, peer } = state.membership;
  const actual = await tools.host.observe(observeOptionsFor(state)).catch(expectCpnError);
  // A host that cannot be observed is taken down anyway: the range shows most sessions.
  if (actual instanceof Error || actual.unread !== undefined)
    return sessions.filter(({ address, local }) => local === peer.address || covers(map.cidr, address));
  return findTunnelledSessions(sessions, peer.address, actual);
}
