import type { AdminService } from '../../api/admin-service.ts';
import { InvalidValue, WrongUsage } from '../../core/errors/index.ts';
import type { Flags } from '../input/flags.ts';
import type { Input } from '../input/input.ts';

export const expiresFlag: Flags = {
  expires: {
    kind: 'text',
    value: 'TIME',
    summary: 'when it expires: a duration such as 12h or 90d, a date such as 2030-01-31 (UTC), a timestamp, or "never"',
    choices: ['never'],
  },
};

const unitMs: Readonly<Record<string, number>> = { h: 3_600_000, d: 86_400_000 };

/** A time in ISO 8601. Null for never, undefined if the flag was omitted. */
export function readExpiry(input: Input, now: Date): string | null | undefined {
  const text = input.text('expires');
  if (text === undefined || text === 'never') return text === undefined ? undefined : null;
  const [, amount, unit = ''] = /^([1-9][0-9]{0,4})(h|d)$/.exec(text) ?? [];
  if (amount !== undefined) return new Date(now.getTime() + Number(amount) * (unitMs[unit] ?? 0)).toISOString();
  const isDay = /^\d{4}-\d\d-\d\d$/.test(text);
  const isInstant = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/.test(text);
  const at = isDay || isInstant ? Date.parse(isDay ? `${text}T00:00:00Z` : text) : Number.NaN;
  // Date accepts days beyond the end of a month, and returns another day.
  const isReal = Number.isFinite(at) && (!isDay || new Date(at).toISOString().startsWith(text));
  if (!isReal) {
    throw new InvalidValue(
      input.nameOf('expires'),
      text,
      'must be a duration (12h, 90d), a date (2030-01-31), a time (2030-01-31T18:00:00Z) or "never"',
    );
  }
  return new Date(at).toISOString();
}

/** Refuses if the service does not describe expiry: it would ignore the field. */
export async function requireExpiry(service: AdminService): Promise<void> {
  if (await service.describes('peer-expiry')) return;
  throw new WrongUsage(
    'this control plane does not support the expiry of peers; leave out --expires, and remove the peer when its time is up',
  );
}
