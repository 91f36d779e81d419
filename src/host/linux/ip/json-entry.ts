import { InvalidValue } from '../../../core/errors/index.ts';
import type { Address } from '../../../core/net/cidr.ts';
import { readAddress } from '../../read-address.ts';

export type JsonEntry = Readonly<Record<string, unknown>>;

export function isEntry(value: unknown): value is JsonEntry {
  return typeof value === 'object' && value !== null;
}

export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** @throws InvalidValue if the value is no integer */
export function numberOf(value: unknown, field: string): number {
  if (typeof value !== 'number' || !Number.isInteger(value)) throw invalidIpOutput(`has no number for ${field}`);
  return value;
}

/** `main`, or the number of the table. */
export function tableName(table: unknown): string {
  return String(table) === mainTable ? 'main' : String(table);
}

/** The name of a protocol in rtnetlink.h, or its number. */
export function protocolName(protocol: unknown): string {
  return protocolNames[String(protocol)] ?? String(protocol);
}

/** `ip` prints an IPv6 gateway of an IPv4 route as `via`. */
export function readGateway({ gateway, via }: JsonEntry): Address | null {
  const text = gateway ?? (isEntry(via) ? via.host : undefined);
  return typeof text === 'string' ? readAddress(text) : null;
}

export function invalidIpOutput(rule: string): InvalidValue {
  return new InvalidValue('it', undefined, rule, 'cpn needs iproute2 4.20 or newer');
}

/** RT_TABLE_MAIN. Some versions of `ip` omit it. */
const mainTable = '254';

/** Protocols of rtnetlink.h, as iproute2 names them. */
const protocolNames: Readonly<Record<string, string>> = {
  1: 'redirect',
  2: 'kernel',
  3: 'boot',
  4: 'static',
  9: 'ra',
  16: 'dhcp',
};
