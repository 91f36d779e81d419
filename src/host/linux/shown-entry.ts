import { InvalidValue } from '../../core/errors.ts';

/** An object in what `ip -json` prints. */
export type Entry = Readonly<Record<string, unknown>>;

export function isEntry(value: unknown): value is Entry {
  return typeof value === 'object' && value !== null;
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** @throws InvalidValue for what is no whole number */
export function numberOf(value: unknown, field: string): number {
  if (typeof value !== 'number' || !Number.isInteger(value)) throw notShown(`has no number for ${field}`);
  return value;
}

/** A table as core names it: `main`, or its number. */
export function nameTable(table: unknown): string {
  return String(table) === mainTable ? 'main' : String(table);
}

/** A protocol by its name where the kernel's rtnetlink.h defines one, else as it is printed. */
export function nameProtocol(protocol: unknown): string {
  return protocols[String(protocol)] ?? String(protocol);
}

export function notShown(rule: string): InvalidValue {
  return new InvalidValue('the output of ip', undefined, rule, 'is this iproute2 4.20 or newer?');
}

/** The main table's number (RT_TABLE_MAIN); `ip` leaves it out, or not, by version. */
const mainTable = '254';

/** Protocols of rtnetlink.h, by the names that iproute2 takes for them. */
const protocols: Readonly<Record<string, string>> = {
  1: 'redirect',
  2: 'kernel',
  3: 'boot',
  4: 'static',
  9: 'ra',
  16: 'dhcp',
};
