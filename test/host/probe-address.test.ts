import { expect, test } from 'vitest';
import { disabledIpv6Key } from '../../src/core/host-state/sysctl-keys.ts';
import { probeAddressOf } from '../../src/core/paths/probe-address.ts';
import { plan } from '../../src/core/reconcile/plan.ts';
import type { ObserveOptions } from '../../src/host/host.ts';
import { desireFor, dialled, network, options, peer } from '../core/samples.ts';
import { Machine } from './machine.ts';

const now = 1_800_000_000;
const self = peer(3);
const map = network([peer(1, { type: 'connector', endpoint: dialled(1) }), self, peer(4)], { relay: 1 });
const own = probeAddressOf(7, 3);
const observeOptions: ObserveOptions = {
  ...{ link: 'cpn0', firewall: true, hosts: false },
  sysctls: ['cpn0', 'default'].map(disabledIpv6Key),
};

/** Makes a pass, and returns the kinds of its steps. */
async function reconcile({ host }: Machine, mtu: number | null = null): Promise<string[]> {
  const actual = await host.observe(observeOptions);
  const forwarding = { sysctls: actual.sysctls, receipt: [], others: [], hasNft: true };
  const steps = plan(desireFor(self, map, { forwarding, paths: [], options: { ...options, mtu } }), actual, now);
  for (const step of steps) await host.apply(step);
  return steps.map((step) => step.do);
}

test('the probe address is on an interface with IPv6, and comes back with it', async () => {
  await using machine = await Machine.start();
  const addresses = () => machine.sh('ip -6 address show dev cpn0');
  await machine.sh('sysctl -qw net.ipv6.conf.default.disable_ipv6=0');
  expect(await reconcile(machine)).toContain('configure-link');
  expect(await addresses()).toContain(`${own}/64`);
  expect(await machine.sh('ip -6 route show dev cpn0')).toContain('fe80::/64');
  expect(await reconcile(machine)).toEqual([]);

  await machine.sh('ip link set cpn0 down; ip link set cpn0 up');
  expect(await reconcile(machine)).toContain('configure-link');
  expect(await addresses()).toContain(`${own}/64`);

  await machine.sh('sysctl -qw net.ipv6.conf.cpn0.disable_ipv6=1');
  await reconcile(machine);
  expect(await reconcile(machine)).toEqual([]);
  expect(await addresses()).not.toContain(own);
  await machine.sh('sysctl -qw net.ipv6.conf.cpn0.disable_ipv6=0');
  await reconcile(machine);
  expect(await addresses()).toContain(`${own}/64`);

  // The kernel takes IPv6 from an interface with a small MTU.
  await reconcile(machine, 1_279);
  expect(await reconcile(machine, 1_279)).toEqual([]);
  expect(await addresses()).not.toContain(own);
  await reconcile(machine, 1_280);
  await reconcile(machine, 1_280);
  expect(await addresses()).toContain(`${own}/64`);
  expect(await reconcile(machine, 1_280)).toEqual([]);
});
