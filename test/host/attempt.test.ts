import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { ActualPeer, Device } from '../../src/core/host-state/actual.ts';
import { hostPrefix } from '../../src/core/net/cidr.ts';
import { advanceAttempt, beginAttempt, trialKeepalive } from '../../src/core/paths/attempt.ts';
import type { AttemptAction } from '../../src/core/paths/attempt-state.ts';
import { probePrefixOf } from '../../src/core/paths/probe-address.ts';
import { parseDump } from '../../src/host/wireguard/dump.ts';
import { renewalCalls } from '../../src/host/wireguard/wg.ts';
import { keyPair, peer, prefix, underlay } from '../core/samples.ts';
import { Machine } from './machine.ts';
import { configure, create, settle } from './steps.ts';

/**
 * Peer 2, `far`, in a namespace of its own, with a WireGuard of its own. Each host has a stateful firewall, which lets in
 * what comes from where it sent to, and counts the packets to each address.
 */
const second = `
  mkdir -p /run/netns && ip netns add far
  ip link add eth0 type veth peer name eth0 netns far
  ip address add 192.0.2.1/24 dev eth0; ip link set eth0 up
  ip netns exec far sh -c 'ip address add 192.0.2.2/24 dev eth0; ip link set eth0 up; ip link set lo up; wireguard-go cpn1; ip link set cpn1 up'
  for in in "" "ip netns exec far"; do $in nft -f - <<'END'
    table inet wall {
      set sent { type ipv4_addr . inet_service; counter; flags dynamic; size 64; }
      chain in { type filter hook input priority 0; iifname eth0 udp dport 51820 ct state new drop; }
      chain out { type filter hook output priority 0; oifname eth0 udp sport 51820 update @sent { ip daddr . udp dport }; }
    }
END
  done`;

class Site {
  readonly number: 1 | 2;
  readonly #machine: Machine;

  constructor(machine: Machine, number: 1 | 2) {
    this.#machine = machine;
    this.number = number;
  }

  get #other() {
    return peer(3 - this.number);
  }

  #sh(command: string): Promise<string> {
    return this.#machine.sh(this.number === 1 ? command : `ip netns exec far ${command}`);
  }

  get link() {
    return `cpn${this.number - 1}`;
  }

  async setUp(): Promise<void> {
    const key = keyPair(this.number).privateKey.reveal();
    await this.#machine.sh(`echo ${key} >/run/key${this.number}`);
    await this.#sh(`wg set ${this.link} private-key /run/key${this.number} listen-port 51820`);
  }

  async device(): Promise<Device> {
    return parseDump(await this.#sh(`wg show ${this.link} dump`));
  }

  async entry(): Promise<ActualPeer | null> {
    return (await this.device()).peers.find(({ publicKey }) => publicKey === this.#other.publicKey) ?? null;
  }

  /** The packets that it sent to an address. */
  async sentTo(address: string): Promise<number> {
    const set = await this.#sh('nft list set inet wall sent');
    return Number(new RegExp(`${address} \\. \\d+ counter packets (\\d+)`).exec(set)?.[1] ?? 0);
  }

  async #apply(action: AttemptAction): Promise<void> {
    if (action.do !== 'renew') return;
    const { publicKey, id } = this.#other;
    const renewed = { publicKey, presharedKey: null, allowedIps: [probePrefixOf(7, id)], keepalive: trialKeepalive };
    const peers = [{ ...renewed, endpoint: action.endpoint }];
    for (const { args } of renewalCalls({ do: 'renew-peers', link: this.link, peers })) {
      await this.#sh(`wg ${args.join(' ')}`);
    }
  }

  /** Makes an attempt, and returns its last action. */
  async attempt(endpoints: readonly string[]): Promise<AttemptAction> {
    let attempt = beginAttempt(
      { peer: this.#other.id, attempt: 1, endpoints, start_in_ms: 500, first: this.number === 1 },
      {
        ...{ now: performance.now(), roundTrip: 0, canProbe: false, underlay: { ...underlay, addresses: [] } },
        tunnel: { range: prefix('10.77.0.0/24'), routes: [] },
      },
    );
    for (;;) {
      const advanced = advanceAttempt(attempt, { now: performance.now(), entry: await this.entry() });
      attempt = advanced.attempt;
      for (const action of advanced.actions) await this.#apply(action);
      const last = advanced.actions.at(-1);
      if (advanced.nextAt === null && last !== undefined) return last;
      await sleep(Math.max(0, (advanced.nextAt ?? 0) - performance.now()));
    }
  }
}

test('an attempt of two hosts behind stateful firewalls gives a session, which a switch keeps, with few packets', async () => {
  await using machine = await Machine.start();
  await machine.host.apply(create);
  await machine.sh(second);
  const [near, far] = [new Site(machine, 1), new Site(machine, 2)];
  await Promise.all([near.setUp(), far.setUp()]);
  await machine.host.apply(settle({ set: 'up' }));

  // Nothing answers at the first candidate.
  const ended = await Promise.all([
    near.attempt(['192.0.2.99:51820', '192.0.2.2:51820']),
    far.attempt(['192.0.2.98:51820', '192.0.2.1:51820']),
  ]);
  expect(ended).toEqual([
    { do: 'prove', by: 'handshake' },
    { do: 'prove', by: 'handshake' },
  ]);
  for (const [site, nowhere, other] of [
    [near, '192.0.2.99', '192.0.2.2'],
    [far, '192.0.2.98', '192.0.2.1'],
  ] as const) {
    expect(await site.sentTo(nowhere)).toBe(1);
    expect(await site.sentTo(other)).toBeGreaterThan(0);
    // Handshakes, and a keepalive each second until both sides have proven it.
    expect(await site.sentTo(other)).toBeLessThanOrEqual(8);
  }

  const before = await near.entry();
  const allowedIps = [hostPrefix(peer(2).address), probePrefixOf(7, 2)];
  const { publicKey } = peer(2);
  const peers = [{ publicKey, presharedKey: null, endpoint: null, allowedIps, keepalive: 25 }];
  await machine.host.apply(configure({ peers }));
  const after = await near.entry();
  expect(after?.allowedIps.toSorted()).toEqual(allowedIps.toSorted());
  const session = ({ endpoint, latestHandshake }: ActualPeer) => [endpoint, latestHandshake];
  expect(after && session(after)).toEqual(before && session(before));
});
