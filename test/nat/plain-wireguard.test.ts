import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../lab/eventually.ts';
import { NatLab } from '../lab/nat/nat-lab.ts';
import { type Pair, tryPairs } from './attempt.ts';
import { type Member, PlainNetwork } from './plain-network.ts';
import { Sites } from './sites.ts';
import { renderAttempts } from './table.ts';
import type { Meeting } from './theory.ts';

let nat: NatLab;
let sites: Sites;
let network: PlainNetwork;
const members = new Map<string, Member>();

beforeAll(async () => {
  // Longer than the time between the starts of two sides on a busy machine.
  nat = await NatLab.start({ delayMs: 250 });
  sites = new Sites(nat);
  const [started] = await Promise.all([PlainNetwork.start(nat), sites.addAll()]);
  network = started;
  for (const member of await network.join(sites.all)) members.set(member.site.host.name, member);
});
afterAll(() => nat?.[Symbol.asyncDispose]());

function member(name: string): Member {
  const found = members.get(name);
  if (found === undefined) throw new Error(`the lab has no host ${name}`);
  return found;
}

function pair(first: string, second: string, meeting: Meeting = {}): Pair {
  return { first: member(first), second: member(second), ...meeting };
}

test('two connectors observe two ports of a host behind symmetric NAT, and one of any other', () => {
  const isSymmetric = ({ observed: [one, other] }: Member) => one !== other && !other?.startsWith('[');
  const found = [...members.values()].filter(isSymmetric).map(({ site }) => site.host.name);
  expect(found).toEqual(['symmetric']);
});

test('pairs with WireGuard alone get the direct paths that theory allows, and no others', async () => {
  const attempts = await tryPairs([
    pair('public', 'home-1'),
    pair('public', 'symmetric'),
    pair('public', 'ipv6-1'),
    pair('public', 'no-udp'),
    pair('home-1', 'home-2'),
    pair('home-1', 'neighbor', { by: 'local' }),
    pair('home-1', 'other-port'),
    pair('home-1', 'by-address'),
    pair('home-1', 'unfiltered'),
    pair('home-1', 'symmetric'),
    pair('home-1', 'double'),
    pair('home-1', 'carrier-1'),
    pair('symmetric', 'by-address'),
    pair('symmetric', 'unfiltered'),
    pair('symmetric', 'other-port'),
    pair('symmetric', 'ipv6-1'),
    pair('ipv6-1', 'ipv6-2'),
    pair('carrier-1', 'carrier-2'),
    pair('hairpin-1', 'hairpin-2'),
    pair('neighbor', 'home-2', { isLate: true }),
    pair('home-2', 'rejecting', { isLate: true }),
    pair('home-2', 'accepting', { isLate: true }),
    pair('public', 'accepting', { isLate: true }),
    pair('accepting', 'far-accepting'),
    pair('public', 'far-public'),
    pair('short', 'home-1'),
  ]);
  process.stdout.write(`\n${renderAttempts(attempts)}\n`);
  for (const {
    pair: { first, second },
    isExpected,
    isReached,
    lost,
  } of attempts) {
    const names = [first, second].map(({ site }) => site.host.name);
    expect([...names, isReached, lost === 5]).toEqual([...names, isExpected, false]);
  }
});

/** Whether packets of a member arrive at another one, and the answers. */
async function arrives(from: string, to: string): Promise<boolean> {
  const { received } = await member(from).site.host.ping(member(to).tunnel.address, { count: 3 });
  return received > 0;
}

test.concurrent.each([
  ['symmetric', 'gets another port', 'public', 'goes on'],
  ['double', 'keeps its port and forgets its flows', 'home-1', 'goes on'],
  ['other-port', 'gets another port', 'home-1', 'ends'],
  ['home-2', 'gets another address', 'home-1', 'ends'],
] as const)('%s %s: the direct path to %s %s', async (name, change, peer, outcome) => {
  expect(await arrives(name, peer)).toBe(true);
  if (change === 'gets another address') await sites.router(name).move('203.0.113.200');
  else await sites.router(name).rebind();
  expect(await arrives(name, peer)).toBe(outcome === 'goes on');
  if (outcome === 'goes on') return;
  const { tunnel, observed } = await network.refresh(member(name));
  await member(peer).tunnel.set(`peer ${tunnel.publicKey} endpoint ${observed[0]}`);
  await eventually('the path comes back at the endpoint that a connector observes', () => arrives(peer, name));
});

test('a mapping that ended lets nothing in before the host sends again', async () => {
  const [short, peer] = [member('short'), member('home-1')];
  await short.tunnel.set(`peer ${peer.tunnel.publicKey} persistent-keepalive off`);
  const flow = `dst=${sites.router('home-1').address}`;
  await eventually('the flow ended', async () => {
    const { stdout } = await sites.router('short').host.exec(['cat', '/proc/net/nf_conntrack']);
    return !stdout.includes(flow);
  });
  expect(await arrives('home-1', 'short')).toBe(false);
  expect(await arrives('short', 'home-1')).toBe(true);
  expect(await arrives('home-1', 'short')).toBe(true);
});
