import { PortTaken } from '../../core/errors/index.ts';
import type { State } from '../../store/state/state.ts';
import { isJoined } from '../select.ts';
import type { Tools } from '../tools.ts';
import { isRemoved } from './check-membership.ts';

/** Milliseconds. A userspace tunnel that was just removed releases its port a moment later. */
const retryPauseMs = 200;
const attempts = 5;

/**
 * Refuses a listen port that is in use, before the enrolment uses the key. A membership that ended releases its port to the
 * next one in the same network.
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
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    await tools.sleep(retryPauseMs);
    if (await tools.host.isPortFree(port)) return;
  }
  throw new PortTaken(link, port, undefined, flag);
}
