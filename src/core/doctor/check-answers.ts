import type { Actual } from '../host-state/actual.ts';
import { isTakenByTunnel, type ReturnPath } from '../host-state/kernel-route.ts';
import { routeProtocol } from '../host-state/marks.ts';
import { formatRule, type Rule } from '../host-state/policy-rule.ts';
import { allForwardingKey } from '../host-state/sysctl-keys.ts';
import type { Desired } from '../reconcile/desired.ts';
import { type Finding, noteFinding, okFinding, problemFinding } from './finding.ts';

/** Checks whether a full tunnel takes replies to clients outside; empty without a full tunnel. */
export function checkAnswers(paths: readonly ReturnPath[], desired: Desired, actual: Actual): Finding[] {
  const { link, rules } = desired;
  if (rules.length === 0 || actual.isPlain) return [];
  const checked = `answers to clients outside the full tunnel of ${link}`;
  const taken = paths.filter((path) => isTakenByTunnel(path, link)).map(({ from }) => from);
  const found =
    taken.length > 0
      ? [
          problemFinding(
            'network',
            checked,
            `those from ${taken.join(', ')} go into the tunnel, and are lost`,
            `cpn reconcile ${link}`,
          ),
        ]
      : [okFinding('network', checked, 'go out by the routes of this host')];
  const begin = Math.min(...rules.map(({ priority }) => priority));
  const late = actual.rules
    .filter((rule) => rule.priority > begin && choosesByMark(rule))
    .map((rule) => {
      const what = `the rule "${rule.priority}: ${formatRule(rule)}" comes after the tunnel, which takes its packets`;
      return noteFinding('network', checked, what, `give it a priority below ${begin}`);
    });
  const forwards = actual.sysctls[allForwardingKey] === '1';
  if (!forwards || rules.some(({ mask }) => mask !== null)) return [...found, ...late];
  const containers = 'without nft, those of containers at published ports go into the tunnel';
  return [...found, ...late, noteFinding('network', checked, containers, 'install nftables')];
}

/** True for a rule of another program that leads to a table by a mark. */
function choosesByMark({ not, fwmark, table, protocol }: Rule): boolean {
  return !not && fwmark !== null && table !== null && protocol !== routeProtocol;
}
