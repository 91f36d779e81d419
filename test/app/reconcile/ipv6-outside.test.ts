import { describe, expect, it } from 'vitest';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { NotConfirmed, Unreachable } from '../../../src/core/errors/index.ts';
import { ipv6Key } from '../../../src/core/host-state/sysctl-keys.ts';
import { bare, dialled, options, peer, prefix } from '../../core/samples.ts';
import { answerWith, Desk, fail, joinedTo, mapAt } from '../desk.ts';

const everything = prefix('0.0.0.0/0');
const relay = peer(2, { type: 'connector', endpoint: dialled(2) });
const map = mapAt('"1"', [relay], { routes: [everything] });
const gone = new Unreachable('https://203.0.113.99', 'gone', { delivered: false, heard: false, retryAfterMs: null });

/** A host with a full tunnel that an earlier version made: IPv6 leaves outside of it. */
async function upgrade(): Promise<Desk> {
  const full = { ...options, allowRoutes: [everything] };
  const desk = await Desk.with(joinedTo(map, { options: { ...full, allowIpv6Outside: true } }));
  desk.actual = { ...bare, sysctls: { [ipv6Key]: '0' } };
  desk.answers = [answerWith(map)];
  await passNetwork(desk.tools, 'cpn0', noUpdate, { withinMs: 20_000 });
  expect(rejections(desk)).toEqual([]);
  await desk.tools.store.write({ ...(await desk.state()), options: full });
  return desk;
}

const rejections = ({ actual }: Desk) => (actual.firewall ?? []).filter((mark) => mark.includes(' reject-ipv6'));

describe('IPv6 outside a full tunnel is rejected under commit-confirm', () => {
  it('and stays rejected where the control plane still answers', async () => {
    const desk = await upgrade();
    await passNetwork(desk.tools, 'cpn0', noUpdate, { withinMs: 20_000 });
    expect(rejections(desk)).toHaveLength(4);
  });

  it('and is let out again where nothing answers any more, with all other packet rules in place', async () => {
    const desk = await upgrade();
    const before = desk.actual.firewall;
    desk.answers = [answerWith(map), fail(gone)];
    await expect(passNetwork(desk.tools, 'cpn0', noUpdate, { withinMs: 20_000 })).rejects.toBeInstanceOf(NotConfirmed);
    expect(desk.steps.filter((step) => step.do === 'set-firewall').length).toBeGreaterThanOrEqual(3);
    expect(desk.actual.firewall).toEqual(before);
  });
});
