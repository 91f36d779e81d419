import { expect, it } from 'vitest';
import { examine } from '../../../src/app/doctor/examine.ts';
import { bringUp } from '../../../src/app/networks/up.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { readStatus } from '../../../src/app/status/status.ts';
import { dialled, options, peer } from '../../core/samples.ts';
import { startExaminedHost } from '../doctor/examined-host.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';

const map = mapAt('"1"', [peer(2, { endpoint: dialled(2) })], { routes: [] });
const port = 51_820;
const withPort = { ...options, listenPort: port };
const confirming = { withinMs: 20_000 };

/** A host whose network cpn0 is to be up, and whose network cpn1 has its port. */
async function occupiedDesk(): Promise<SimulatedHost> {
  const simulated = await SimulatedHost.with(joinedTo(map, { options: withPort }));
  await simulated.tools.store.write(joinedTo({ ...map, name: 'other' }, { interface: 'cpn1', options: withPort }));
  const device = { publicKey: null, listenPort: port, fwmark: null, peers: [] };
  simulated.tools.host.device = async (link) => (link === 'cpn1' ? device : simulated.actual.device);
  simulated.takenPorts.add(port);
  return simulated;
}

const taken = {
  name: 'PortTaken',
  message: expect.stringMatching(
    /UDP port 51820 is in use by cpn1, the interface of network "other"; .*cpn leave cpn1/,
  ),
};

it('a bring-up whose port another network has makes nothing, and names that network', async () => {
  const simulated = await occupiedDesk();
  const [up] = await bringUp(simulated.tools, 'cpn0');
  expect(up?.failure).toMatchObject(taken);
  await expect(passNetwork(simulated.tools, 'cpn0', noUpdate, confirming)).rejects.toMatchObject(taken);
  expect([simulated.steps, simulated.actual.link]).toEqual([[], null]);
  simulated.takenPorts.clear();
  await passNetwork(simulated.tools, 'cpn0', noUpdate, confirming);
  expect([simulated.actual.link?.up, simulated.actual.device?.listenPort]).toEqual([true, port]);
});

it('a bring-up waits for a port that is released a moment later', async () => {
  const simulated = await occupiedDesk();
  const { sleep } = simulated.tools;
  simulated.tools.sleep = async (...given) => {
    simulated.takenPorts.clear();
    await sleep(...given);
  };
  expect((await bringUp(simulated.tools, 'cpn0'))[0]?.failure).toBeNull();
  expect(simulated.actual.link?.up).toBe(true);
});

it('an interface that was left down, as by earlier versions, is removed', async () => {
  const simulated = await occupiedDesk();
  simulated.takenPorts.clear();
  await passNetwork(simulated.tools, 'cpn0', noUpdate, confirming);
  const { link } = simulated.actual;
  simulated.actual = { ...simulated.actual, link: link && { ...link, up: false } };
  simulated.takenPorts.add(port);
  await expect(passNetwork(simulated.tools, 'cpn0', noUpdate, confirming)).rejects.toMatchObject(taken);
  expect(simulated.actual.link).toBeNull();
});

it('an interface that is down and has the port itself, as wireguard-go keeps it, goes up again', async () => {
  const simulated = await SimulatedHost.with(joinedTo(map, { options: withPort }));
  await bringUp(simulated.tools);
  const { link } = simulated.actual;
  simulated.actual = { ...simulated.actual, link: link && { ...link, up: false } };
  simulated.takenPorts.add(port);
  simulated.steps.length = 0;
  await passNetwork(simulated.tools, 'cpn0', noUpdate, confirming);
  expect([
    simulated.actual.link?.up,
    simulated.steps.some((step) => JSON.stringify(step).includes('delete-link')),
  ]).toEqual([true, false]);
});

it('status and doctor name the port and the network that has it, with a remedy', async () => {
  const { simulated, tools } = await startExaminedHost(map, { options: withPort });
  simulated.actual = { ...simulated.actual, link: null, device: null, routes: [] };
  simulated.takenPorts.add(port);
  const stopped = { text: 'is missing: UDP port 51820 is in use' };
  expect((await readStatus(simulated.tools))[0]).toMatchObject({ state: 'down', problems: [stopped] });
  const device = { publicKey: null, listenPort: port, fwmark: null, peers: [] };
  await simulated.tools.store.write(joinedTo({ ...map, name: 'other' }, { interface: 'cpn1', options: withPort }));
  tools.host.device = async (link) => (link === 'cpn1' ? device : null);
  const text = 'is missing: UDP port 51820 is in use by cpn1, the interface of network "other"';
  const remedy =
    'choose another with "cpn set cpn0 --listen-port PORT", or release it with "cpn leave cpn1" or "cpn down cpn1"';
  const [status] = await readStatus(simulated.tools, 'cpn0');
  expect(status).toMatchObject({ state: 'down', problems: [{ code: 'interface-missing', text, remedy }] });
  const found = (await examine(tools, 'cpn0')).filter(({ verdict }) => verdict === 'problem');
  expect(found).toMatchObject([{ subject: 'network', found: text, remedy }]);
});
