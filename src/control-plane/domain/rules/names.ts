import type { AccessRule, RuleTest } from '../../../contract/rules.ts';
import { InvalidValue, quote } from '../../../core/errors/index.ts';
import { hasPorts, notPorts } from '../../../core/map/access-rules.ts';
import { covers, overlaps, type Prefix } from '../../../core/net/cidr.ts';
import { formatMapSelector } from '../../../core/rules/map-selector.ts';
import { formatSelector, type NamedSelector, parsePorts, parseSelector } from '../../../core/rules/selector.ts';
import { type BrokenRules, InvalidRequest } from '../../errors.ts';
import type { RuleSet } from './rule-set.ts';

/** A peer of the network, also a suspended or expired one. */
export interface NamedPeer {
  readonly id: number;
  readonly name: string;
  readonly label: string | null;
}

/** What the selectors of rules may name. */
export interface NamedThings {
  readonly range: Prefix;
  readonly routes: readonly Prefix[];
  readonly peers: readonly NamedPeer[];
  /** The last names of removed peers, by id. */
  readonly gone: Readonly<Record<string, string>>;
  /** The selectors of the stored rules: those of removed routes and peers stay valid. */
  readonly stored: ReadonlySet<string>;
}

/**
 * Translates the names of peers in selectors to ids.
 * @throws InvalidRequest that names each rule
 */
export function resolveNames(
  asked: Omit<RuleSet, 'rules' | 'tests'> & Partial<Pick<RuleSet, 'rules' | 'tests'>>,
  named: NamedThings,
): RuleSet {
  const { mode, rules = [], tests = [], require_enforcement } = asked;
  const resolver = new Resolver(named);
  const taken = new Set<string>();
  const resolved = {
    ...{ mode, require_enforcement },
    rules: rules.map((rule, place) => {
      const at = `rules.${place}`;
      if (taken.has(rule.name)) resolver.refuse(`${at}.name`, rule.name, 'is the name of two rules');
      taken.add(rule.name);
      return resolver.readRule(rule, at);
    }),
    tests: tests.map((test, place) => resolver.readTest(test, `tests.${place}`)),
  };
  resolver.finish();
  return resolved;
}

/**
 * Translates one selector like {@link resolveNames}.
 * @throws InvalidRequest that names the field
 */
export function resolveName(text: string, field: string, named: NamedThings): string {
  const resolver = new Resolver(named);
  const resolved = resolver.readSelector(text, field);
  resolver.finish();
  return resolved;
}

/** Translates the ids in stored selectors to the names of peers as they are now. */
export function showNames(
  { rules, tests, ...others }: RuleSet,
  { peers, gone }: Pick<NamedThings, 'peers' | 'gone'>,
): RuleSet {
  const names = new Map(peers.map(({ id, name }) => [String(id), name]));
  const show = (text: string) => {
    const selector = parseSelector(text);
    if (selector.kind !== 'peer') return text;
    const name = names.get(selector.name);
    return name === undefined ? `gone:${gone[selector.name] ?? `peer-${selector.name}`}` : `peer:${name}`;
  };
  return {
    ...others,
    rules: rules.map((rule) => ({ ...rule, from: rule.from.map(show), to: rule.to.map(show) })),
    tests: tests.map((test) => ({ ...test, from: show(test.from), to: show(test.to) })),
  };
}

/** A refusal lists so many broken rules at most. */
const mostBroken = 50;

class Resolver {
  readonly #named: NamedThings;
  readonly #byName: ReadonlyMap<string, readonly NamedPeer[]>;
  readonly #byLabel: ReadonlyMap<string | null, NamedPeer>;
  readonly #goneIds: ReadonlyMap<string, string>;
  readonly #broken: Record<string, string[]> = {};

  constructor(named: NamedThings) {
    this.#named = named;
    this.#byName = Map.groupBy(named.peers, ({ name }) => name);
    this.#byLabel = new Map(named.peers.map((peer) => [peer.label, peer]));
    const left = Object.entries(named.gone).filter(([id]) => named.stored.has(`peer:${id}`));
    this.#goneIds = new Map(left.map(([id, name]) => [name, id]));
  }

  readRule(rule: AccessRule, at: string): AccessRule {
    const owner = `rule ${quote(rule.name)}`;
    const { protocol, ports } = rule;
    if (ports.length > 0 && !hasPorts(protocol)) this.refuse(`${at}.ports`, ports, notPorts, owner);
    for (const [place, port] of ports.entries()) this.#try(owner, () => parsePorts(port, `${at}.ports.${place}`));
    const read = (side: 'from' | 'to') =>
      rule[side].map((text, place) => this.readSelector(text, `${at}.${side}.${place}`, owner));
    // The keys are in the order of the schema, whatever the order in the request.
    return { name: rule.name, from: read('from'), to: read('to'), protocol, ports: [...ports] };
  }

  readTest({ from, to, protocol, port, expect }: RuleTest, at: string): RuleTest {
    const place = `test ${Number(at.slice('tests.'.length)) + 1}`;
    if (port !== undefined && !hasPorts(protocol)) this.refuse(`${at}.port`, port, notPorts, place);
    return {
      from: this.readSelector(from, `${at}.from`, place),
      to: this.readSelector(to, `${at}.to`, place),
      ...{ protocol, ...(port !== undefined && { port }), expect },
    };
  }

  /** @param owner what has the selector, for the message */
  readSelector(text: string, field: string, owner = ''): string {
    const read = this.#try(owner, () => this.#resolve(parseSelector(text, field), text, field));
    return read ?? 'any';
  }

  refuse(field: string, value: unknown, rule: string, owner = ''): void {
    this.#note(field, `${quote(value)} ${rule}${owner && ` (${owner})`}`);
  }

  finish(): void {
    if (Object.keys(this.#broken).length > 0) throw new InvalidRequest(this.#broken satisfies BrokenRules);
  }

  #try<Value>(owner: string, parse: () => Value): Value | undefined {
    try {
      return parse();
    } catch (error) {
      if (!(error instanceof InvalidValue)) throw error;
      this.#note(error.field, `${error.message.slice(error.field.length + 1)}${owner && ` (${owner})`}`);
      return undefined;
    }
  }

  #note(field: string, rule: string): void {
    if (Object.keys(this.#broken).length < mostBroken) this.#broken[field] = [...(this.#broken[field] ?? []), rule];
  }

  #resolve(selector: NamedSelector, text: string, field: string): string {
    const refuse = (rule: string, remedy?: string) => new InvalidValue(field, text, rule, remedy);
    if (selector.kind === 'peer') {
      const [peer, other] = this.#byName.get(selector.name) ?? [this.#byLabel.get(selector.name)];
      if (other !== undefined) throw refuse(`is the name of peers ${peer?.id} and ${other.id}`, 'rename one of them');
      if (peer === undefined) throw refuse('is no peer of the network', 'list them with "cpn peer list"');
      return formatMapSelector({ kind: 'peer', id: peer.id });
    }
    if (selector.kind === 'gone') {
      const id = this.#goneIds.get(selector.name);
      if (id === undefined) throw refuse('is no removed peer of the current rules', 'leave it out');
      return `peer:${id}`;
    }
    const written = formatSelector(selector);
    if (selector.kind === 'any' || selector.kind === 'tag' || this.#named.stored.has(written)) return written;
    const { range, routes } = this.#named;
    if (selector.kind === 'route') {
      if (routes.includes(selector.prefix)) return written;
      throw refuse('is no route of the network', `its routes are ${routes.join(', ') || 'none'}; cidr: selects a part`);
    }
    if (routes.some((route) => covers(route, selector.prefix))) return written;
    if (overlaps(range, selector.prefix))
      throw refuse(`lies in the range ${range} of the network`, 'name peers with peer:NAME');
    throw refuse('lies in no route of the network', `its routes are ${routes.join(', ') || 'none'}`);
  }
}
