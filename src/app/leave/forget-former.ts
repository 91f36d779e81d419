import { NotJoined, quote } from '../../core/errors/index.ts';
import { findNamed } from '../../core/names/find-named.ts';
import type { FormerMembership } from '../../store/former-networks.ts';
import { dropFormer, namesOf } from '../networks/former-networks.ts';
import type { Tools } from '../tools.ts';

/**
 * Drops what is kept of networks that this host left. Its joined networks stay.
 *
 * @throws NotJoined if `network` names none of them
 * @throws WrongUsage if it names several
 */
export async function deleteFormer(
  tools: Pick<Tools, 'store'>,
  network?: string,
): Promise<readonly FormerMembership[]> {
  return tools.store.lock(async () => {
    const { memberships } = await tools.store.readFormer();
    const dropped = network === undefined ? memberships : [findFormer(memberships, network)];
    await dropFormer(tools, dropped);
    return dropped;
  });
}

function findFormer(memberships: readonly FormerMembership[], network: string): FormerMembership {
  const found = findNamed(memberships, network, {
    what: 'former network',
    names: namesOf,
    describe: ({ interface: link, network: { id, name }, service }) =>
      `${link} (${quote(name)}, id ${id}, ${service.url})`,
    remedy: 'give a name that only one of them has, or no name to drop all',
  });
  if (found) return found;
  throw new NotJoined(`this host stores no former network ${quote(network)}; "cpn status" lists those that it stores`);
}
