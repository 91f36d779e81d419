import type { InvalidValue } from '../errors/index.ts';
import { type ProvidedValue, type Remarks, wrong } from './provided-sections.ts';

/** Additional packets of AmneziaWG. A WireGuard peer drops them. */
const added = ['Jc', 'Jmin', 'Jmax', 'I1', 'I2', 'I3', 'I4', 'I5', 'J1', 'J2', 'J3', 'Itime'];

/** Settings that change packets, and values that do not (`process_line`, amneziawg's config.c). */
const changing: ReadonlyMap<string, RegExp> = new Map([
  ...[1, 2, 3, 4].map((n) => [`S${n}`, /^0*$/] as const),
  ...[1, 2, 3, 4].map((n) => [`H${n}`, new RegExp(`^(0*${n}(-0*${n})?)?$`)] as const),
  ['HeaderProtectionKey', /^$/],
  ['RandomTrailers', /^(off|0*)$/i],
]);

/** Settings of AmneziaWG, a variant of WireGuard, in an `[Interface]`. */
export const amneziaKeys: readonly string[] = [...added, ...changing.keys()];

/**
 * Adds a remark about AmneziaWG settings that this host ignores.
 *
 * @throws InvalidValue if peers send other packets than WireGuard: no handshake could succeed
 */
export function checkAmnezia(settings: ReadonlyMap<string, ProvidedValue>, remarks: Remarks): void {
  const fatal = [...settings].filter(([key, { text }]) => changing.get(key)?.test(text) === false);
  if (fatal.length > 0) throw refusal(fatal);
  if (settings.size > 0)
    remarks.add(`${listOf([...settings])}: settings of AmneziaWG that WireGuard does without, and not used`);
}

function refusal(fatal: readonly AmneziaSetting[]): InvalidValue {
  const verb = fatal.length === 1 ? 'changes' : 'change';
  return wrong(
    'the text',
    `is for AmneziaWG, not for WireGuard: ${listOf(fatal)} ${verb} the packets, and no handshake can succeed`,
  );
}

type AmneziaSetting = readonly [string, ProvidedValue];

function listOf(settings: readonly AmneziaSetting[]): string {
  return settings.map(([key, { line }]) => `${key} of line ${line}`).join(', ');
}
