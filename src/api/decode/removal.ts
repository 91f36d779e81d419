import { aliases } from '../aliases.ts';
import type { PendingHost } from '../service.ts';
import { Field, type Source } from './field.ts';
import { decodeId } from './id.ts';
import { maxName, maxPeers } from './network.ts';

/** The hosts that have not applied a removal; of each only id and name must be there. */
export function decodePending(body: unknown, source: Source): PendingHost[] {
  const pending = Field.ofReply(body, source).as('removals').need(aliases.removal.pending).items(maxPeers);
  return pending.map((host) => {
    const version = host.tryFind(aliases.removal.version, (found) => found.text(maxName));
    const deletion = host.tryFind(aliases.removal.deletion, (found) => decodeOutcome(found.text(maxName)));
    return {
      id: decodeId(host.need(aliases.removal.id)),
      name: host.need(aliases.removal.name).text(maxName),
      acknowledged_revision: host.tryFind(aliases.removal.revision, (revision) => revision.integer()),
      last_seen: host.tryFind(aliases.removal.lastSeen, (at) => at.instant()),
      ...(version !== null && { version }),
      ...(deletion != null && { deletion }),
    };
  });
}

/** A later version may have more outcomes. */
function decodeOutcome(text: string): PendingHost['deletion'] {
  return text === 'stated' || text === 'unsupported' ? text : null;
}
