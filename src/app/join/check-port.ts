import { PortTaken } from '../../core/errors/index.ts';
import type { State } from '../../store/state/state.ts';
import { awaitFreePort, findPortHolder } from '../reconcile/port-conflict.ts';
import { isJoined } from '../select.ts';
import type { Tools } from '../tools.ts';
import { isRemoved } from './check-membership.ts';

/**
 * Refuses a listen port that is in use, before the enrolment uses the key. A membership that ended
 * releases its port to the next one in the same network.
 *
 * @throws PortTaken
 */
export async function checkPort(
  tools: Tools,
  { interface: link, service, options: { listenPort: port } }: Pick<State, 'interface' | 'service' | 'options'>,
  states: readonly State[],
  flag?: '--endpoint' | '--listen-port',
): Promise<void> {
  if (port === null || (await tools.host.isPortFree(port))) return;
  const holder = states.filter(isJoined).find((state) => state.options.listenPort === port);
  if (holder?.service.url === service.url && (await isRemoved(tools, holder))) return;
  if (await awaitFreePort(tools, port)) return;
  const taken = { holder: await findPortHolder(tools, { interface: link }, port), ...(flag && { flag }) };
  throw new PortTaken(link, port, taken);
}
