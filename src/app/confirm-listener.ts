import type { ServiceAddress } from '../core/net/service-address.ts';
import type { Tools } from './tools.ts';

/**
 * The address with the user whose program listens there now, for loopback without TLS: a person names the address, and so confirms that
 * user. Warns where another one listened before, and of a login user, whose program may have taken the port.
 *
 * @param before the user who is remembered for this address; undefined for none
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
