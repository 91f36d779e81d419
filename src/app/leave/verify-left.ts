import { NotConverged } from '../../core/errors/index.ts';
import { tableOf } from '../../core/forward/own-table.ts';
import { formatRule } from '../../core/host-state/policy-rule.ts';
import { findOurRules } from '../../core/routing/tunnel-rules.ts';
import type { HostTools } from '../tools.ts';

/**
 * Verifies that nothing of a left network is on the host any more, except what {@link recordFormer}
 * kept.
 *
 * @returns the resources that were checked, and are absent
 * @throws NotConverged with the resources that remain
 */
export async function verifyLeft(tools: HostTools, link: string): Promise<readonly string[]> {
  const actual = await tools.host.observe({ link, firewall: true, sysctls: [], hosts: true });
  // The rules of a full tunnel belong to one network, which may be another one.
  const others = (await tools.store.list()).states.filter((state) => state.interface !== link);
  const rules = others.length > 0 ? [] : findOurRules(actual.rules).map((rule) => `rule ${formatRule(rule)}`);
  const searched: readonly (readonly [what: string, isThere: boolean])[] = [
    [`interface ${link}`, actual.link !== null],
    [`nft table ${tableOf(link)}`, actual.firewall !== null],
    [`block of ${link} in the hosts file`, actual.hosts?.block != null],
    [tools.store.configPath(link), (await tools.store.readConfig(link)) !== null],
    [`state of ${link}`, (await tools.store.read(link)) !== null],
  ];
  const left = [...searched.flatMap(([what, isThere]) => (isThere ? what : [])), ...rules];
  if (left.length > 0) throw new NotConverged(link, left);
  return [...searched.map(([what]) => what), ...(others.length > 0 ? [] : ['policy rule of cpn'])];
}
