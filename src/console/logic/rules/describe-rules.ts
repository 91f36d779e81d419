import type { AccessChange, Enforcement, RulesMode, RuleTest } from '../../../contract/rules.ts';
import { toSentence } from '../text/format.ts';
import { type FieldProblems, hasPorts, type RulesDraft } from './draft.ts';

export const modeTexts: Readonly<Record<RulesMode, string>> = {
  open: 'This network is open: every peer reaches every peer and route.',
  closed: 'This network is closed: what no rule allows is denied.',
};

/** Formats protocol and ports, as in `tcp 22, 8000-8080`. */
export function describeTraffic({ protocol, ports }: Pick<AccessChange, 'protocol' | 'ports'>): string {
  if (protocol === 'other') return 'other protocols';
  if (ports.length > 0) return `${protocol} ${ports.join(', ')}`;
  return hasPorts(protocol) ? `${protocol}, all ports` : protocol;
}

/** Formats connections of a preview. Echo requests between peers are always allowed. */
export function describeChange({ from, to, ...traffic }: AccessChange): string {
  const isBetweenPeers = [from, to].every((selector) => selector.startsWith('peer:'));
  return traffic.protocol === 'icmp' && isBetweenPeers ? 'icmp except echo' : describeTraffic(traffic);
}

/** Formats the connections of a test, as in `tcp 22`. */
export function describeTested({ protocol, port }: Pick<RuleTest, 'protocol' | 'port'>): string {
  return describeTraffic({ protocol, ports: port === undefined ? [] : [String(port)] });
}

export const enforcers: Readonly<Record<Enforcement['by'], string>> = {
  destination: 'destination',
  connector: 'connector',
  nothing: 'nothing',
};

/** Sorts peers to which nothing enforces the rules first. */
export function sortEnforcement(enforcement: readonly Enforcement[]): readonly Enforcement[] {
  const rank = ({ by }: Enforcement) => (by === 'nothing' ? 0 : 1);
  return enforcement.toSorted((one, other) => rank(one) - rank(other) || one.peer.id - other.peer.id);
}

/** The problems of a 422, each with the rule or the test that it is about. */
export function describeProblems(fields: FieldProblems, { rules }: RulesDraft): readonly string[] {
  return Object.entries(fields).flatMap(([field, problems]) =>
    problems.map((problem) => {
      // A field is rules.1.from.0. A schema has the field rules, and "item 1.from.0" in the text.
      const found = /^(rules|tests)(?:\.| item )(\d+)(?:\.([\w.]+))?:? (.*)$/.exec(`${field} ${problem}`);
      if (found === null) return toSentence(`${field} ${problem}`);
      const [, list, position, part, text] = found;
      const at = Number(position);
      const name = list === 'rules' ? `rule ${rules[at]?.name || at + 1}` : `test ${at + 1}`;
      return toSentence(`${name}${part === undefined ? '' : `, ${part}`}: ${text}`);
    }),
  );
}

/** Seconds until an instant; 0 once it is over. `now` is in milliseconds. */
export function countSeconds(until: string, now: number): number {
  return Math.max(0, Math.ceil((Date.parse(until) - now) / 1000));
}
