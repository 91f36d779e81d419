import type { AdminService } from '../../api/admin-service.ts';
import { InvalidValue, WrongUsage } from '../../core/errors/index.ts';
import type { Flags } from '../input/flags.ts';
import type { Input } from '../input/input.ts';

export const maxAgeFlag: Flags = {
  'max-age': {
    kind: 'text',
    value: 'TIME',
    summary:
      'connectors stop relaying and serving after this time without the control plane, such as 24h or 7d; "off": no limit',
    choices: ['off'],
  },
};

const unitSeconds: Readonly<Record<string, number>> = { m: 60, h: 3600, d: 86_400 };
const [least, most] = [300, 31_536_000];

/** Seconds. Null for no bound, undefined if the flag was omitted. @throws InvalidValue */
export function readMaxAge(input: Input): number | null | undefined {
  const text = input.text('max-age');
  if (text === undefined || text === 'off') return text === undefined ? undefined : null;
  const [, amount, unit = ''] = /^([1-9][0-9]{0,5})(m|h|d)$/.exec(text) ?? [];
  const seconds = Number(amount) * (unitSeconds[unit] ?? 0);
  if (seconds >= least && seconds <= most) return seconds;
  throw new InvalidValue(input.nameOf('max-age'), text, 'must be from 5m to 365d, such as 24h, or "off"');
}

/** Refuses if the service does not describe a maximum age: it would ignore the field. */
export async function requireMaxAge(service: AdminService): Promise<void> {
  if (await service.describes('network-map-age')) return;
  throw new WrongUsage('this control plane does not support a maximum age of maps; leave out --max-age');
}
