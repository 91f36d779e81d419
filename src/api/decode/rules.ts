import type { AccessRules, Rule } from '../../core/map/access-rules.ts';
import type { NetworkMap } from '../../core/map/model.ts';
import { parseMapSelector } from '../../core/rules/map-selector.ts';
import { parsePorts } from '../../core/rules/selector.ts';
import { aliases } from '../aliases.ts';
import type { Field } from './field.ts';

const names = aliases.rules;

/** More than our control plane allows: a part that is left out allows less. */
const mostRules = 4000;
const mostSelectors = 1024;
const mostPorts = 256;
const protocols = ['any', 'tcp', 'udp', 'icmp'] as const;
const maxName = 120;

/**
 * The rules of a closed network. Absent in an open one, and from another service, whose `rules`
 * have no mode. A mode other than `open` counts as closed.
 *
 * @param base the map to which a delta applies: a delta without the list keeps its rules
 * @throws BadReply for a closed network without its rules: what it allows is then unknown
 */
export function decodeRules(network: Field, base?: NetworkMap): Pick<NetworkMap, 'rules'> {
  const rules = network.tryFind(aliases.network.rules, (found) => {
    const mode = found.need(names.mode).text(maxName);
    return mode === 'open' ? null : found.as('rules');
  });
  if (rules === null) return {};
  const list = rules.find(names.list);
  const requiresEnforcement = rules.tryFind(names.requireEnforcement, ({ value }) => value === true) === true;
  if (list === null && base?.rules !== undefined) return { rules: { ...base.rules, requiresEnforcement } };
  const read = rules.need(names.list).items(mostRules).map(readRule);
  const unread = read.flatMap(({ name, isWhole }) => (isWhole ? [] : [name]));
  const usable: AccessRules = { rules: read.flatMap(({ rule }) => rule ?? []), requiresEnforcement };
  return { rules: unread.length === 0 ? usable : { ...usable, unread } };
}

interface ReadRule {
  readonly name: string;
  readonly rule: Rule | null;
  /** False if a part of it cannot be used. */
  readonly isWhole: boolean;
}

/** Leaves out selectors that this version cannot use, and a rule without its other parts. */
function readRule(field: Field, place: number): ReadRule {
  const name = field.tryFind(names.name, (found) => found.text(maxName)) ?? `${place + 1}`;
  return field.attempt<ReadRule>(
    (at) => {
      const [from, to] = [readSelectors(at.need(names.from)), readSelectors(at.need(names.to))];
      const protocol = at.need(names.protocol).oneOf(protocols);
      const ports = at
        .need(names.ports)
        .items(mostPorts)
        .map((port) => port.parse((text) => parsePorts(text)));
      const rule = { name, from: from.usable, to: to.usable, protocol, ports };
      return { name, rule, isWhole: from.isWhole && to.isWhole };
    },
    () => ({ name, rule: null, isWhole: false }),
  );
}

function readSelectors(field: Field): { readonly usable: Rule['from']; readonly isWhole: boolean } {
  const read = field.items(mostSelectors).map((item) =>
    item.attempt<Rule['from'][number] | null>(
      (at) => at.parse((text) => parseMapSelector(text)),
      () => null,
    ),
  );
  const usable = read.filter((selector) => selector !== null);
  return { usable, isWhole: usable.length === read.length };
}
