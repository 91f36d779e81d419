import type { AdminService } from '../api/service.ts';
import { CpnError } from '../core/errors/index.ts';
import type { Id } from '../core/map/model.ts';
import { note } from './output/output.ts';

/** Says how many enrolment keys of a network have uses left, with which a peer that is kept out can join again; nothing where none has. */
export async function noteKeys(service: AdminService, network: Id): Promise<void> {
  const count = await countKeys(service, network);
  if (count === 0) return;
  const keys = count === null ? 'unknown number' : String(count);
  note(
    `usable enrolment keys: ${keys}; a holder can join again; list them with "cpn key list", revoke with "cpn key revoke"`,
  );
}

/** Null where the service does not say. */
async function countKeys(service: AdminService, network: Id): Promise<number | null> {
  try {
    return (await service.listKeys(network)).length;
  } catch (error) {
    // The peer is changed all the same.
    if (!(error instanceof CpnError)) throw error;
    return null;
  }
}
