import { expect, it } from 'vitest';
import { verifyLeft } from '../../../src/app/leave/leave.ts';
import { NotConverged } from '../../../src/core/errors/index.ts';
import type { Actual } from '../../../src/core/host-state/actual.ts';
import { tunnelRules } from '../../../src/core/routing/tunnel-rules.ts';
import { bare, underlay } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';

const rules = tunnelRules({ underlay, api: [] }, false);
const link = { name: 'cpn0', kind: 'wireguard', up: true, mtu: 1420, addresses: [] } as unknown as Actual['link'];

/** What may be left of a network, by the words that name it. */
const remains: readonly [string, Partial<Actual>, 'file' | 'state' | null][] = [
  ['interface cpn0', { link }, null],
  ['nft table cpn_cpn0', { firewall: [] }, null],
  ['block of cpn0 in the hosts file', { hosts: { block: 'x' } as unknown as Actual['hosts'] }, null],
  ['/etc/dnsmasq.d/cpn-cpn0.conf', { dnsFiles: { '/etc/dnsmasq.d/cpn-cpn0.conf': '' } }, null],
  ['cpn0.conf', {}, 'file'],
  ['state of cpn0', {}, 'state'],
  ['rule ', { rules }, null],
];

it.each(remains)('a network is not left while there is still its %s', async (what, actual, stored) => {
  const simulated = await SimulatedHost.empty();
  const { store } = simulated.tools;
  simulated.actual = { ...bare, ...actual };
  if (stored === 'file') await store.writeConfig('cpn0', '[Interface]\n');
  if (stored === 'state') await store.write(joinedTo(mapAt('"1"', [])));
  const failure = await verifyLeft(simulated.tools, 'cpn0').catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(NotConverged);
  expect((failure as NotConverged).message).toContain(what);
});

it('a network is left once nothing of it is there, and policy rules may be those of another one', async () => {
  const simulated = await SimulatedHost.empty();
  const checked = await verifyLeft(simulated.tools, 'cpn0');
  const names = remains.slice(0, -1).map(([what]) => (what.includes('dnsmasq') ? 'file of cpn0 for a resolver' : what));
  for (const name of names) expect(checked.join()).toContain(name);
  expect(checked.at(-1)).toBe('policy rule of cpn');
  await simulated.tools.store.write({ ...joinedTo(mapAt('"1"', [])), interface: 'cpn1' });
  simulated.actual = { ...bare, rules };
  expect(await verifyLeft(simulated.tools, 'cpn0')).toEqual(checked.slice(0, -1));
});
