import type { NetworkRules, RuleDecision, RulesPreview } from '../../api/admin-service.ts';
import { printable } from '../../core/errors/index.ts';
import { listNames } from '../../core/util/list-names.ts';
import { type Cell, green, red, table, yellow } from '../output/output.ts';
import { paintEnforcement } from '../output/peer-table.ts';

type Enforcement = NetworkRules['enforcement'][number];
type Rule = NetworkRules['rules'][number];
type Traffic = Pick<RulesPreview['lost'][number], 'protocol' | 'ports'>;

/** Selectors of a rule that a row shows; `--yaml` prints all. */
const mostSelectors = 6;

/** The rules of a network as text. @param all true to list what enforces at each peer */
export function describeRules({ mode, rules, tests, ...more }: NetworkRules, all: boolean): string {
  const notes = [...describeEnforcement(mode, more.enforcement, more.require_enforcement), ...describeGone(rules)];
  const warnings = more.warnings.map((warning) => yellow(printable(warning)));
  return [
    describeMode(mode, rules.length),
    ...(rules.length === 0 ? [] : [rulesTable(rules)]),
    ...(tests.length === 0 ? [] : [testsTable(tests)]),
    ...(notes.length + warnings.length === 0 ? [] : [[...notes, ...warnings].join('\n')]),
    ...(all ? [enforcementTable(more.enforcement)] : []),
  ].join('\n\n');
}

function describeMode(mode: NetworkRules['mode'], count: number): string {
  if (mode === 'open') {
    const stored = count === 0 ? '' : '; the rules are stored, and not applied';
    return `${yellow('open')}: every peer reaches every peer and route${stored}`;
  }
  return `${green('closed')}: what no rule allows is denied${count === 0 ? '; there is no rule' : ''}`;
}

function rulesTable(rules: readonly Rule[]): string {
  return table(
    ['rule', 'from', 'to', 'for'],
    rules.map(({ name, from, to, ...rule }) => [name, selectorsCell(from), selectorsCell(to), describeTraffic(rule)]),
    { cut: { from: 20, to: 20 } },
  );
}

function selectorsCell(selectors: readonly string[]): Cell {
  const more = selectors.length - mostSelectors;
  const text = `${selectors.slice(0, mostSelectors).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  return selectors.some(isGone) ? [text, yellow] : text;
}

function testsTable(tests: NetworkRules['tests']): string {
  return table(
    ['test', 'from', 'to', 'for'],
    tests.map(({ from, to, protocol, port, expect }) => [expect, from, to, describePort(protocol, port)]),
  );
}

function describeEnforcement(
  mode: NetworkRules['mode'],
  enforcement: readonly Enforcement[],
  isRequired: boolean,
): string[] {
  if (mode === 'open') return [];
  const free = enforcement.filter(({ by }) => by === 'nothing').map(({ peer }) => printable(peer.name));
  const required = isRequired ? ['peers whose host does not enforce rules are no destination'] : [];
  if (free.length === 0) return [...required, 'the rules are enforced at every peer'];
  const count = `${free.length} of ${enforcement.length} peers`;
  return [...required, `nothing enforces the rules at ${count}: ${listNames(free)}`];
}

function describeGone(rules: readonly Rule[]): string[] {
  const gone = new Set(rules.flatMap(({ from, to }) => [...from, ...to]).filter(isGone));
  if (gone.size === 0) return [];
  const names = [...gone].map((selector) => printable(selector));
  return [`removed peers, which select nothing: ${listNames(names)}`];
}

function isGone(selector: string): boolean {
  return selector.startsWith('gone:');
}

function enforcementTable(enforcement: readonly Enforcement[]): string {
  return table(
    ['peer', 'name', 'enforced by'],
    enforcement.map(({ peer, by }) => [String(peer.id), peer.name, paintEnforcement(by)]),
  );
}

/** `tcp 22, 8000-8080`, or `all traffic`. */
export function describeTraffic({ protocol, ports }: Traffic): string {
  if (protocol === 'other') return 'other protocols';
  const [first = '', ...others] = ports;
  if (first === '') return protocol === 'any' ? 'all traffic' : protocol;
  const list = [first, ...others].join(', ');
  return protocol === 'any' ? `port ${list}` : `${protocol} ${list}`;
}

export function describePort(protocol: string, port: number | undefined): string {
  return port === undefined ? protocol : `${protocol} ${port}`;
}

/** Why one end reaches the other, or not, and which hosts decide. */
export function describeDecision({ from, to, protocol, port, points, ...decision }: RuleDecision): string {
  const { verdict, rule, ports = [], why } = decision;
  const allowed = rule === null ? 'allowed' : `allowed by the rule ${JSON.stringify(printable(rule))}`;
  const denied =
    ports.length === 0 ? red('denied') : yellow(`allowed for ${describeTraffic({ protocol, ports })} alone`);
  const outcome = verdict === 'allow' ? green(allowed) : denied;
  return [
    `${printable(from)} → ${printable(to)}, ${describePort(protocol, port)}: ${outcome}`,
    // Of an allowed connection it names the rule again.
    ...(rule === null ? [`  ${printable(why)}`] : []),
    ...points.map(({ peer, by }) =>
      by === 'nothing'
        ? `  ${yellow(`nothing enforces the rules at ${printable(peer.name)}`)}`
        : `  enforced at ${printable(peer.name)}, the ${by}`,
    ),
  ].join('\n');
}
