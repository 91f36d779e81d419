import type { ServiceAddress } from '../core/net/service-address.ts';
import type { Tools } from './tools.ts';

/**
 * Returns the address with the user whose program now listens there, for loopback without TLS: by
 * naming the address, the operator confirms that user. Warns if another user listened before, and
 * about a login user, whose program may have taken the port.
 *
 * @param before the recorded user of this address; undefined for none
 */
export async function confirmListener(
  tools: Pick<Tools, 'findListeningUser' | 'warn'>,
  service: ServiceAddress,
  before: number | undefined,
): Promise<ServiceAddress> {
  const found = await tools.findListeningUser(service, before);
  if (found === null) return before === undefined ? service : { ...service, listener: before };
  const { user, description, previousUser, isLoginUser } = found;
  const listens = `${description} listens at ${service.url}`;
  if (previousUser !== null)
    tools.warn(`${listens} now, and ${previousUser} did before; this command confirms the new one`);
  else if (before === undefined && isLoginUser) {
    tools.warn(`${listens}; check that the control plane runs as that user`);
  }
  return { ...service, listener: user };
}
