import type { AdminService } from '../../api/admin-service.ts';
import type { Role } from '../../contract/auth.ts';
import type { SelfEnroll } from '../../contract/network.ts';
import { InvalidValue, WrongUsage } from '../../core/errors/index.ts';
import type { Id } from '../../core/map/model.ts';
import type { Flags } from '../input/flags.ts';
import type { Input } from '../input/input.ts';

export const selfEnrollFlags: Flags = {
  'self-enroll': {
    kind: 'text',
    value: 'ROLES',
    summary: 'users with these roles may enrol own devices after a login, such as member,viewer; "off": no user',
    choices: ['off'],
  },
  'self-enroll-limit': {
    kind: 'text',
    value: '1..100',
    summary: 'how many own devices each user may have; 3 if it was never set',
  },
  reauth: {
    kind: 'text',
    value: 'TIME',
    summary:
      'own devices leave the network so long after the last login of their user, such as 24h or 7d; "off": never',
    choices: ['off'],
  },
};

const allRoles: readonly Role[] = ['owner', 'admin', 'member', 'viewer'];
const [usualLimit, mostDevices, mostHours] = [3, 100, 8760];
const unitHours: Readonly<Record<string, number>> = { h: 1, d: 24 };

/** The given fields; `roles` is null for no user. */
type Asked = { readonly [Name in keyof SelfEnroll]?: SelfEnroll[Name] | null };

/** Undefined without a flag. @throws InvalidValue or WrongUsage */
export function readSelfEnroll(input: Input): Asked | undefined {
  const roles = readRoles(input);
  const limit = input.number('self-enroll-limit', 1, mostDevices);
  const reauth_hours = readReauth(input);
  if (roles === null && (limit !== undefined || reauth_hours !== undefined))
    throw new WrongUsage('--self-enroll off excludes --self-enroll-limit and --reauth; leave them out');
  const asked = {
    ...(roles !== undefined && { roles }),
    ...(limit !== undefined && { limit }),
    ...(reauth_hours !== undefined && { reauth_hours }),
  };
  return Object.keys(asked).length === 0 ? undefined : asked;
}

function readRoles(input: Input): Role[] | null | undefined {
  const text = input.text('self-enroll');
  if (text === undefined || text === 'off') return text === undefined ? undefined : null;
  const named = new Set<string>(text.split(',').map((role) => role.trim()));
  const roles = allRoles.filter((role) => named.has(role));
  if (roles.length === named.size) return roles;
  const rule = `must be roles, with commas between them: ${allRoles.join(', ')}; or "off"`;
  throw new InvalidValue(input.nameOf('self-enroll'), text, rule);
}

function readReauth(input: Input): number | null | undefined {
  const text = input.text('reauth');
  if (text === undefined || text === 'off') return text === undefined ? undefined : null;
  const [, amount, unit = ''] = /^([1-9][0-9]{0,3})(h|d)$/.exec(text) ?? [];
  const hours = Number(amount) * (unitHours[unit] ?? 0);
  if (hours >= 1 && hours <= mostHours) return hours;
  throw new InvalidValue(input.nameOf('reauth'), text, 'must be from 1h to 365d, such as 24h, or "off"');
}

/** The settings of a network with the given fields. Others keep their value. */
export async function mergeSelfEnroll(
  service: Pick<AdminService, 'listNetworks'>,
  network: Id,
  { roles, limit, reauth_hours }: Asked,
  input: Input,
): Promise<SelfEnroll | null> {
  if (roles === null) return null;
  const present = (await service.listNetworks()).find(({ id }) => id === network)?.self_enroll;
  const named = roles ?? present?.roles;
  if (named === undefined) {
    const flag = input.has('reauth') ? '--reauth' : '--self-enroll-limit';
    throw new WrongUsage(`${flag} needs --self-enroll: no user may enrol own devices in this network yet`);
  }
  return {
    roles: named,
    limit: limit ?? present?.limit ?? usualLimit,
    reauth_hours: reauth_hours === undefined ? (present?.reauth_hours ?? null) : reauth_hours,
  };
}

/** Refuses if the service does not describe own devices: it would ignore the field. */
export async function requireSelfEnroll(service: AdminService): Promise<void> {
  if (await service.describes('network-self-enroll')) return;
  throw new WrongUsage('this control plane has no own devices of users; leave out --self-enroll and --reauth');
}

export function describeSelfEnroll({ roles, limit, reauth_hours: hours }: SelfEnroll): string {
  const time = hours !== null && hours % 24 === 0 ? `${hours / 24} d` : `${hours} h`;
  const end = hours === null ? '' : `; each leaves the network ${time} after the last login of its user`;
  return `own devices: up to ${limit} for each ${roles.join(', ')}${end}`;
}
