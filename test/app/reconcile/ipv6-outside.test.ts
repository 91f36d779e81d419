import { describe, expect, it } from 'vitest';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { NotConfirmed, Unreachable } from '../../../src/core/errors/index.ts';
import { ipv6Key } from '../../../src/core/host-state/sysctl-keys.ts';
import { bare, dialled, options, peer, prefix } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith, fail } from '../simulated-service.ts';

const everything = prefix('0.0.0.0/0');
const relay = peer(2, { type: 'connector', endpoint: dialled(2) });
const map = mapAt('"1"', [relay], { routes: [everything] });
const gone = new Unreachable('https://203.0.113.99', 'gone', { delivered: false, heard: false, retryAfterMs: null });

/** A host with a full tunnel that an earlier version made: IPv6 leaves outside of it. */
async function upgrade(): Promise<SimulatedHost> {
  const full = { ...options, allowRoutes: [everything] };
  const simulated = await SimulatedHost.with(joinedTo(map, { options: { ...full, allowIpv6Outside: true } }));
  simulated.actual = { ...bare, sysctls: { [ipv6Key]: '0' } };
  simulated.service.mapReplies = [answerWith(map)];
  await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 20_000 });
  expect(rejections(simulated)).toEqual([]);
  await simulated.tools.store.write({ ...(await simulated.state()), options: full });
  return simulated;
}

const rejections = ({ actual }: SimulatedHost) =>
  (actual.firewall ?? []).filter((mark) => mark.includes(' reject-ipv6'));

describe('IPv6 outside a full tunnel is rejected under commit-confirm', () => {
  it('it stays rejected where the control plane still answers', async () => {
    const simulated = await upgrade();
    await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 20_000 });
    expect(rejections(simulated)).toHaveLength(4);
  });

  it('it is let out again where nothing answers any more, with all other packet rules in place', async () => {
    const simulated = await upgrade();
    const before = simulated.actual.firewall;
    simulated.service.mapReplies = [answerWith(map), fail(gone)];
    await expect(passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 20_000 })).rejects.toBeInstanceOf(
      NotConfirmed,
    );
    const loads = simulated.steps.flatMap((step) => (step.do === 'set-firewall' ? [typeof step.now] : []));
    expect(loads.length).toBeGreaterThanOrEqual(3);
    expect(new Set(loads)).toEqual(new Set(['number']));
    expect(simulated.actual.firewall).toEqual(before);
  });
});
