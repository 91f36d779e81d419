import type { AuditEntry } from '../../../contract/audit.ts';
import { printableLines } from '../../../core/errors/printable.ts';
import type { Query } from '../page/route.ts';
import { describeDetails, type NetworkNames } from './describe-audit.ts';

export interface AuditView {
  readonly search: string;
  readonly action: string;
  readonly hours: string;
}

/** The groups of actions, by the part before the dot. */
export const actionGroups = [
  ['', 'all'],
  ['peer', 'peers'],
  ['network', 'networks'],
  ['rules', 'rules'],
  ['key', 'enrolment keys'],
  ['user', 'users'],
  ['login', 'logins'],
  ['session', 'sessions'],
  ['token', 'personal tokens'],
  ['password', 'passwords'],
] as const;

export const periods = [
  ['', 'any time'],
  ['1', 'the last hour'],
  ['24', 'the last 24 hours'],
  ['168', 'the last 7 days'],
  ['720', 'the last 30 days'],
] as const;

const isIn = (value: string, choices: readonly (readonly [string, string])[]) =>
  choices.some(([each]) => each === value);

export function readAuditView({ q = '', action = '', hours = '' }: Query): AuditView {
  return {
    search: q.slice(0, 100),
    action: isIn(action, actionGroups) ? action : '',
    hours: isIn(hours, periods) ? hours : '',
  };
}

export const writeAuditView = ({ search, action, hours }: AuditView): Query => ({ q: search, action, hours });

export function toAuditQuery({ search, action, hours }: AuditView, now: number): string {
  const query = new URLSearchParams();
  if (search.trim() !== '') query.set('search', search.trim());
  if (action !== '') query.set('action', action);
  if (hours !== '') query.set('since', new Date(now - Number(hours) * 3_600_000).toISOString());
  return query.toString();
}

const header = [
  ...['id', 'time', 'actor kind', 'actor', 'actor id', 'action', 'target kind', 'target', 'target id'],
  ...['address', 'details'],
];

/** The entries as CSV (RFC 4180). Spreadsheets recognise UTF-8 by the byte order mark. */
export function toCsv(entries: readonly AuditEntry[], names: NetworkNames): string {
  const rows = entries.map(({ id, at, actor, action, target, address, details }) => [
    ...[id, at, actor.kind, actor.name, actor.id, action, target.kind, target.name, target.id],
    ...[address, describeDetails({ details }, names)],
  ]);
  return `\u{feff}${[header, ...rows].map((row) => `${row.map(toCell).join(',')}\r\n`).join('')}`;
}

/**
 * The starts of cells that spreadsheets interpret as a formula, also in full width (OWASP, CSV
 * injection): a peer chooses its name. A spreadsheet with `;` or a tab as separator, such as a
 * German one, starts cells within the text too, and ignores quotes there.
 */
const formulas = /(^|[,;|\n\t])(?=["\s\u{fffd}]*[=+\-@\u{ff1d}\u{ff0b}\u{ff0d}\u{ff20}])/gu;

function toCell(value: string | number | null): string {
  if (value === null) return '';
  if (typeof value === 'number') return String(value);
  return `"${printableLines(value).replace(formulas, "$1'").replaceAll('"', '""')}"`;
}
