import { Refused } from '../../core/errors/index.ts';
import type { Flags } from './flags.ts';

/** The flags for fields of the API. A password may come from a prompt. */
const flagOf: Readonly<Record<string, string>> = {
  add_routes: 'add-route',
  expires_at: 'expires',
  expires_in_days: 'expires-in-days',
  expires_in_hours: 'expires-in-hours',
  max_uses: 'max-uses',
  peer_expires_in_hours: 'peer-expires',
  peer_type: 'type',
  peer_types: 'type',
  private_cidr: 'cidr',
  remove_routes: 'remove-route',
  routes: 'route',
};

/** A field, or an entry of a field, in a refusal's list of violations: `routes.0: is no range`. */
const listedField = /(?<=[:;] |\()(\w+)(?:[.[][\w.[\]]*)?(?=: )/g;

/** Replaces the API's field names with flags, if the control plane rejects values (422). */
export function nameFlags(error: unknown, flags: Flags): unknown {
  if (!(error instanceof Refused) || error.status !== 422) return error;
  error.message = error.message.replace(listedField, (field, name: string) => {
    const flag = flagOf[name] ?? name;
    return Object.hasOwn(flags, flag) ? `--${flag}` : field;
  });
  return error;
}
