import { describe, expect, test } from 'vitest';
import type { Underlay } from '../../../src/core/host-state/actual.ts';
import type { Peer } from '../../../src/core/map/model.ts';
import { type Aimed, haveSameAim } from '../../../src/core/reconcile/aim.ts';
import { tunnelRule } from '../../../src/core/routing/tunnel-rules.ts';
import { address, desireFor, dialled, ground, network, peer, prefix, surroundings } from '../samples.ts';

const lan = prefix('192.168.50.0/24');
const edge = peer(2, { type: 'connector', endpoint: dialled(2), routes: [lan] });
const laptop = peer(1);

/** What a pass of one of the two works towards with this around it. */
function aim(self: Peer, around: Partial<Underlay> = {}): Aimed {
  const there = { ...surroundings, ...around };
  const on = { ...ground, surroundings: there };
  const desired = desireFor(self, network([laptop, edge]), { routeTable: '8350' }, on);
  return { desired, actual: { rules: [], surroundings: there } };
}

const inLan = { connected: [...surroundings.connected, { prefix: lan, link: 'eth1' }] };

describe('the aim of two passes', () => {
  test.each<[string, Peer, Partial<Underlay>]>([
    ['the host is in a network that a route leads to', laptop, inLan],
    [
      'a VPN takes everything',
      laptop,
      { routed: ['0.0.0.0/1', '128.0.0.0/1'].map((wide) => ({ prefix: prefix(wide), link: 'tun0' })) },
    ],
    ['the underlay has another MTU', laptop, { underlayMtu: 1400 }],
    ['a connector has an address in its LAN', edge, inLan],
  ])('is another where %s', (_, self, around) => {
    expect(haveSameAim(aim(self), aim(self, around))).toBe(false);
    expect(haveSameAim(aim(self, around), aim(self, around))).toBe(true);
  });

  test('is another where rules of others are asked before ours', () => {
    const here = aim(laptop);
    const ruled = { ...here, actual: { ...here.actual, rules: [{ ...tunnelRule, table: '52', protocol: 'kernel' }] } };
    expect(haveSameAim(here, ruled)).toBe(false);
  });

  test('is the same whatever else comes and goes', () => {
    const more = {
      links: [...surroundings.links, { name: 'veth7', kind: 'other' } as const],
      sshClients: [{ address: address('198.51.100.9'), local: null }],
    };
    expect(haveSameAim(aim(laptop), aim(laptop, more))).toBe(true);
  });
});
