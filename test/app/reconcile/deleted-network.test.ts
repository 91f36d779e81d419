import { describe, expect, it } from 'vitest';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate, type StateUpdate } from '../../../src/app/reconcile/state-update.ts';
import { DiskFailed } from '../../../src/core/errors/index.ts';
import type { OpenPort, OwnedResource } from '../../../src/core/host-state/receipt.ts';
import { catalogue } from '../../../src/core/problems/problem.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { dialled, options, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith } from '../simulated-service.ts';

const map = mapAt('"1"', [peer(2, { type: 'connector', endpoint: dialled(2) })]);
const at = '2026-11-26T00:00:00.000Z';
const stated: StateUpdate = { ...noUpdate, deletedAt: at };
const port: OpenPort = { by: 'ufw', port: 51_820, zone: null, permanent: true };
const listening = { ...options, listenPort: 51_820, openFirewall: true };

/** A host that is up in its network. */
async function startDesk(changes: Partial<Joined> = {}): Promise<SimulatedHost> {
  const simulated = await SimulatedHost.with(joinedTo(map, changes));
  simulated.ports = [{ at: port, is: 'closed' }];
  simulated.service.mapReplies = [answerWith(map)];
  await pass(simulated, noUpdate);
  simulated.steps.length = 0;
  return simulated;
}

const pass = (simulated: SimulatedHost, update: StateUpdate) =>
  passNetwork(simulated.tools, 'cpn0', update, { withinMs: 20_000 });

/** All of the network that is on the host. */
async function look(simulated: SimulatedHost) {
  const { enabled, deletion, openPorts, receipt } = await simulated.state();
  const { link, firewall } = simulated.actual;
  const file = await simulated.tools.store.readConfig('cpn0');
  return { enabled, deletion, openPorts, receipt, link, firewall, file };
}

const gone = { openPorts: [], receipt: [], link: null, firewall: null, file: null };

describe('a network whose control plane stated its deletion twice', () => {
  it('is removed from the host once, with one warning', async () => {
    const simulated = await startDesk();
    await pass(simulated, stated);
    const removed = { ...gone, enabled: false, deletion: { at, resumes: true } };
    expect(await look(simulated)).toEqual(removed);
    const steps = simulated.steps.length;
    await pass(simulated, { ...noUpdate, deletedAt: '2027-01-01T00:00:00.000Z' });
    await pass(simulated, noUpdate);
    expect([await look(simulated), simulated.steps.length]).toEqual([removed, steps]);
    const warnings = simulated.logged.filter(({ message }) => message === catalogue['network-deleted'].title);
    expect(warnings).toMatchObject([{ level: 'warn', facts: { interface: 'cpn0', network: 'office' } }]);
  });

  const parts: [string, Partial<Joined>][] = [
    ...(['interface', 'firewall', 'rules'] as const).map((made): [string, Partial<Joined>] => [
      made,
      { receipt: [{ made, link: 'cpn0' } satisfies OwnedResource] },
    ]),
    ['open port', { openPorts: [port] }],
  ];
  describe.each([
    ['another statement', stated],
    ['no statement', noUpdate],
  ])('after a crash in its removal, and with %s,', (_, update) => {
    it.each(parts)('loses the %s that was left', async (_part, left) => {
      const simulated = await startDesk();
      const { actual } = simulated;
      await pass(simulated, stated);
      simulated.actual = actual;
      simulated.ports = [{ at: port, is: 'open' }];
      await simulated.tools.store.write({ ...(await simulated.state()), ...left });
      await pass(simulated, update);
      expect(await look(simulated)).toMatchObject({ openPorts: [], receipt: [], link: null, file: null });
    });

    it('loses the wg-quick file that was left', async () => {
      const simulated = await startDesk();
      const text = (await simulated.tools.store.readConfig('cpn0')) ?? '';
      await pass(simulated, stated);
      await simulated.tools.store.writeConfig('cpn0', text);
      await pass(simulated, update);
      expect(await look(simulated)).toMatchObject(gone);
    });
  });

  it('loses its tunnel although its wg-quick file cannot be renamed, which a later pass does', async () => {
    const simulated = await startDesk();
    const { store } = simulated.tools;
    const error = new DiskFailed('replace', '/x', Object.assign(new Error('EROFS'), { code: 'EROFS', errno: -30 }));
    const tools = { ...simulated.tools, store: { ...store, setConfigAside: () => Promise.reject(error) } };
    await expect(passNetwork(tools, 'cpn0', stated, { withinMs: 20_000 })).rejects.toBe(error);
    expect(simulated.actual.link).toBeNull();
    expect(await store.readConfig('cpn0')).not.toBeNull();
    await pass(simulated, noUpdate);
    expect(await look(simulated)).toMatchObject(gone);
  });
});

describe('a network that its control plane has again', () => {
  it('comes up, with its port, and is up on disk before its first step', async () => {
    const simulated = await startDesk({ options: listening, openPorts: [port] });
    await pass(simulated, stated);
    expect(await look(simulated)).toMatchObject(gone);
    const { apply } = simulated.tools.host;
    const written: unknown[] = [];
    simulated.tools.host.apply = async (step) => {
      const { enabled, deletion } = await simulated.state();
      written.push({ enabled, deletion });
      await apply(step);
    };
    expect(await pass(simulated, { ...noUpdate, isBack: true })).toMatchObject({ isDrift: false });
    expect(written.length).toBeGreaterThan(1);
    expect(new Set(written.map((each) => JSON.stringify(each)))).toEqual(new Set(['{"enabled":true}']));
    const { openPorts, enabled, link, file } = await look(simulated);
    expect({ openPorts, enabled }).toEqual({ openPorts: [port], enabled: true });
    expect([link?.name, typeof file]).toEqual(['cpn0', 'string']);
  });

  it('stays down where a user took it down', async () => {
    const simulated = await startDesk();
    await simulated.tools.store.write({ ...(await simulated.state()), enabled: false });
    await pass(simulated, stated);
    expect((await simulated.state()).deletion).toEqual({ at, resumes: false });
    simulated.steps.length = 0;
    await pass(simulated, { ...noUpdate, isBack: true });
    const { enabled, deletion } = await look(simulated);
    expect([enabled, deletion, simulated.steps]).toEqual([false, undefined, []]);
  });
});
