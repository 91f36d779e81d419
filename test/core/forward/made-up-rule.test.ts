import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { bare, dialled, network, peer, prefix } from '../samples.ts';

// Follows "A packet rule" in CONTRIBUTING: its text in the file of its subject, and its place in the order of these rules.
const madeUp = { name: 'refuse-made-up', chain: 'forward', text: 'iifname "cpn0" tcp dport 7 drop' } as const;

beforeAll(() => {
  vi.resetModules();
  vi.doMock(import('../../../src/core/forward/forward-rule.ts'), async (original) => {
    const real = await original();
    const forwardRulesOf: typeof real.forwardRulesOf = (link) => {
      const write = real.forwardRulesOf(link);
      return Object.assign(write, { refuseMadeUp: () => madeUp });
    };
    return { ...real, forwardRulesOf };
  });
  vi.doMock(import('../../../src/core/forward/forwarding-rules.ts'), async (original) => {
    const real = await original();
    const { forwardRulesOf } = await import('../../../src/core/forward/forward-rule.ts');
    const written = (link: string) => forwardRulesOf(link) as unknown as { refuseMadeUp: () => typeof madeUp };
    return {
      ...real,
      forwardingRules: (inputs) => [written(inputs.link).refuseMadeUp(), ...real.forwardingRules(inputs)],
    } satisfies typeof real;
  });
});

afterAll(() => {
  vi.doUnmock('../../../src/core/forward/forward-rule.ts');
  vi.doUnmock('../../../src/core/forward/forwarding-rules.ts');
  vi.resetModules();
});

it('a rule in both files is loaded, recognised on the host, and put back if it is missing', async () => {
  const { desireFor } = await import('../samples.ts');
  const { commentOf } = await import('../../../src/core/forward/packet-rule.ts');
  const { firewallMarks } = await import('../../../src/core/forward/own-table.ts');
  const { renderFirewall } = await import('../../../src/host/linux/nft/own-table.ts');
  const { planFirewall } = await import('../../../src/core/reconcile/plan-forwarding.ts');

  const lan = prefix('192.168.50.0/24');
  const self = peer(1, { type: 'connector', endpoint: dialled(1), routes: [lan] });
  const desired = desireFor(self, network([self, peer(3)], { routes: [lan] }));
  const { firewall } = desired;
  if (firewall === null) throw new Error('a connector has packet rules');
  expect(firewall.rules).toContainEqual(madeUp);
  const comment = commentOf(madeUp);
  expect(comment).toMatch(/^cpn refuse-made-up [0-9a-f]+$/);
  expect(renderFirewall(firewall)).toContain(`\n    ${madeUp.text} comment "${comment}"\n`);

  const marks = firewallMarks(firewall);
  expect(planFirewall(desired, { ...bare, firewall: marks })).toEqual([]);
  const without = marks.filter((each) => each !== `forward ${comment}`);
  const [step] = planFirewall(desired, { ...bare, firewall: without });
  expect(step).toMatchObject({ do: 'set-firewall', firewall });
});
