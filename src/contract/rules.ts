import * as z from 'zod';
import { identifier, instant, nameShown, requiredText, text } from './text.ts';

/** Who may reach what in a network: its mode, its rules, and the tests that they must pass. */

export const mostRules = 1000;
export const mostSelectors = 256;
const mostPorts = 64;
const mostTests = 1000;

/** The most elements of packet filters that the rules may need on one host. */
export const mostElements = 65_536;

export const RulesMode = z.enum(['open', 'closed']).meta({
  id: 'RulesMode',
  description: 'open: every peer reaches every peer and route. closed: what no rule allows is denied.',
});
export type RulesMode = z.infer<typeof RulesMode>;

export const RuleProtocol = z.enum(['any', 'tcp', 'udp', 'icmp']).meta({ id: 'RuleProtocol' });
export type RuleProtocol = z.infer<typeof RuleProtocol>;

const selectorForms =
  'peer:NAME, tag:NAME, route:CIDR (a route of the network), cidr:CIDR (inside a route), or any. gone:NAME stands for a peer that was removed, and selects nothing.';

/** core/rules/selector.ts parses it. */
export const SelectorText = text(160).meta({ description: selectorForms });

/** `22` or `8000-8080`. core/rules/selector.ts parses it. */
const PortsText = text(11).meta({ description: 'A port, or a range such as 8000-8080.', example: '8000-8080' });

const ruleFields = {
  name: requiredText(63).meta({ description: 'Unique in the network.' }),
  from: z.array(SelectorText).min(1, { error: 'must name a sender, or any' }).max(mostSelectors),
  to: z.array(SelectorText).min(1, { error: 'must name a destination, or any' }).max(mostSelectors),
  protocol: RuleProtocol.default('any'),
  ports: z
    .array(PortsText)
    .max(mostPorts)
    .default([])
    .meta({ description: 'Destination ports of tcp or udp; empty for all.' }),
};

/** Allows connections from some peers and routes to others. */
export const AccessRule = z.object(ruleFields).meta({ id: 'AccessRule' });
export type AccessRule = z.infer<typeof AccessRule>;

/** A sender and a destination, and whether the rules must let the one reach the other. */
export const RuleTest = z
  .object({
    from: SelectorText,
    to: SelectorText,
    protocol: z.enum(['tcp', 'udp', 'icmp']).default('tcp'),
    port: z.int().min(1).max(65_535).optional().meta({ description: 'Of tcp and udp; absent for all ports.' }),
    expect: z.enum(['allow', 'deny']),
  })
  .meta({ id: 'RuleTest', description: 'Holds if the rules decide so for each pair that the selectors name.' });
export type RuleTest = z.infer<typeof RuleTest>;

const requireEnforcement = z.boolean().default(false).meta({
  description: 'True to let no peer be a destination whose host does not enforce rules. It stays a sender.',
});

/** The rules as a user sets them. They replace those that there are. */
export const SetRules = z
  .object({
    mode: RulesMode,
    rules: z.array(AccessRule).max(mostRules).default([]),
    tests: z.array(RuleTest).max(mostTests).default([]),
    require_enforcement: requireEnforcement,
    confirm_within_seconds: z.int().min(10).max(3600).optional().meta({
      description: 'The earlier rules return after this time unless a user confirms the new ones.',
    }),
  })
  .meta({ id: 'SetRules' });
export type SetRules = z.infer<typeof SetRules>;

/** A selector in a reply. */
const selectorShown = z.string().meta({ maxLength: 160 });

const explanation = z.string().meta({ maxLength: 1000 });

/** The maximum number of warnings in a reply. */
export const mostWarnings = 100;

const warnings = z.array(explanation).max(mostWarnings).meta({
  description:
    'What is probably a mistake: a tag that no peer has, and a host with too many elements of packet filters.',
});

/** What applies the rules to connections that go to a peer. */
export const Enforcement = z
  .object({
    peer: z.object({ id: identifier, name: nameShown }),
    by: z.enum(['destination', 'connector', 'nothing']).meta({
      description:
        'destination: the host itself. connector: connectors alone, for a peer that all reach through them. nothing: its host applies no rules.',
    }),
  })
  .meta({ id: 'Enforcement' });
export type Enforcement = z.infer<typeof Enforcement>;

/** The rules as the service has them. */
export const NetworkRules = z
  .object({
    mode: RulesMode,
    rules: z.array(AccessRule),
    tests: z.array(RuleTest),
    require_enforcement: z.boolean(),
    enforcement: z.array(Enforcement).meta({ description: 'Every peer of the map.' }),
    warnings,
    confirm_until: instant
      .optional()
      .meta({ description: 'When the earlier rules return. Absent if these rules are confirmed.' }),
  })
  .meta({ id: 'NetworkRules' });
export type NetworkRules = z.infer<typeof NetworkRules>;

/** Connections from one end to the other that a change allows or ends. */
export const AccessChange = z
  .object({
    from: selectorShown.meta({ description: 'A selector: one peer, a route, a part of it, or all.' }),
    to: selectorShown,
    protocol: z
      .enum(['any', 'tcp', 'udp', 'icmp', 'other'])
      .meta({ description: 'other: every protocol but tcp, udp and icmp.' }),
    ports: z.array(z.string()).meta({ description: 'Empty for all ports.' }),
  })
  .meta({ id: 'AccessChange' });
export type AccessChange = z.infer<typeof AccessChange>;

/** The maximum number of entries of each list in a preview. */
export const mostAccessChanges = 1000;

export const RuleTestResult = RuleTest.extend({
  protocol: z.enum(['tcp', 'udp', 'icmp']),
  passed: z.boolean(),
  why: explanation.meta({ description: 'The rule that decides, or the pair that differs.' }),
}).meta({ id: 'RuleTestResult' });
export type RuleTestResult = z.infer<typeof RuleTestResult>;

/** The effects that rules would have, and whether they pass their tests. */
export const RulesPreview = z
  .object({
    gained: z.array(AccessChange).max(mostAccessChanges),
    lost: z.array(AccessChange).max(mostAccessChanges),
    gained_count: z.int().min(0).meta({ description: 'Also those past the maximum of the list.' }),
    lost_count: z.int().min(0),
    complete: z.boolean().meta({
      description:
        'False if the rules name too many peers one by one to compare all pairs: there may be more gains and losses.',
    }),
    tests: z.array(RuleTestResult),
    enforcement: z.array(Enforcement).meta({ description: 'Peers to which nothing enforces the rules.' }),
    refused: z.array(z.object({ from: selectorShown, to: selectorShown, why: explanation })).meta({
      description: 'Connections that a rule allows, and that cannot keep their source, so that they are refused.',
    }),
    warnings,
  })
  .meta({ id: 'RulesPreview' });
export type RulesPreview = z.infer<typeof RulesPreview>;

/** Why one end may reach the other, or not. */
export const RuleDecision = z
  .object({
    from: selectorShown.meta({ description: 'The sender: peer:NAME, or an address.' }),
    to: selectorShown,
    protocol: z.enum(['tcp', 'udp', 'icmp']),
    port: z.int().min(1).max(65_535).optional(),
    verdict: z.enum(['allow', 'deny']),
    rule: z.string().nullable().meta({ description: 'The name of the rule that allows; null without one.' }),
    ports: z
      .array(z.string())
      .optional()
      .meta({ description: 'The ports that are allowed, where the request names none and not all are.' }),
    why: explanation,
    points: z
      .array(
        z.object({
          peer: z.object({ id: identifier, name: nameShown }),
          by: z.enum(['destination', 'connector', 'nothing']),
        }),
      )
      .meta({ description: 'The hosts on the way that decide.' }),
  })
  .meta({ id: 'RuleDecision' });
export type RuleDecision = z.infer<typeof RuleDecision>;

/** Who reaches a peer or a route, or every pair, with one protocol and port. */
export const ReachablePairs = z
  .object({
    pairs: z
      .array(z.object({ from: selectorShown, to: selectorShown, rule: z.string().nullable() }))
      .max(10_000)
      .meta({
        description: 'rule: null in an open network. Pairs that are not listed are denied.',
      }),
    complete: z.boolean().meta({ description: 'False if there are more pairs than the list has.' }),
  })
  .meta({ id: 'ReachablePairs' });
export type ReachablePairs = z.infer<typeof ReachablePairs>;

/** A rule as hosts receive it: `peer:ID` in place of names. */
const MapRule = z.object({
  name: nameShown,
  from: z.array(z.string()),
  to: z.array(z.string()),
  protocol: RuleProtocol,
  ports: z.array(z.string()),
});

/** The rules of a closed network in its map. */
export const MapRules = z
  .object({
    mode: z.literal('closed'),
    require_enforcement: z.literal(true).optional(),
    rules: z.array(MapRule).meta({ description: 'Selectors name peers by id: peer:17.' }),
  })
  .meta({ id: 'MapRules', description: 'Absent in an open network.' });
export type MapRules = z.infer<typeof MapRules>;

/** The rules of a closed network in the changes of its map. */
export const ChangedMapRules = z
  .object({
    ...MapRules.shape,
    rules: MapRules.shape.rules.optional().meta({ description: 'Absent if they are those of the base.' }),
  })
  .meta({ id: 'ChangedMapRules', description: 'Absent in an open network.' });
export type ChangedMapRules = z.infer<typeof ChangedMapRules>;
