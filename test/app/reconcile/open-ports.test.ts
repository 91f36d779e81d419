import { describe, expect, it } from 'vitest';
import { cleanUp } from '../../../src/app/reconcile/cleanup.ts';
import { refuseUnfixedPort, syncPorts } from '../../../src/app/reconcile/open-ports.ts';
import { CommandFailed } from '../../../src/core/errors/index.ts';
import type { OpenPort } from '../../../src/core/host-state/receipt.ts';
import { network, options, peer } from '../../core/samples.ts';
import { joinedTo } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';

const at: OpenPort = { by: 'ufw', port: 51820, zone: null, permanent: true };
const wishing = { ...options, listenPort: 51820, openFirewall: true };

/** A host with ufw, on which the port is closed. */
async function deskWith(changes: Parameters<typeof joinedTo>[1] = { options: wishing }) {
  const simulated = await SimulatedHost.with(joinedTo(network([peer(1)]), changes));
  simulated.ports = [{ at, is: 'closed' }];
  const warnings: string[] = [];
  const tools = { ...simulated.tools, warn: (text: string) => void warnings.push(text) };
  return {
    simulated,
    tools,
    warnings,
    settle: async () => syncPorts(tools, await simulated.state(), simulated.actual),
  };
}

describe('a port in the firewall', () => {
  it('is in the state before it is opened, and is closed again', async () => {
    const { simulated, tools, settle } = await deskWith();
    const { apply } = simulated.tools.host;
    let noted: readonly OpenPort[] = [];
    tools.host.apply = async (step) => {
      noted = (await simulated.state()).openPorts;
      await apply(step);
    };
    expect((await settle()).changes).toMatchObject([{ action: 'add', kind: 'firewall', target: 'ufw' }]);
    expect([noted, (await simulated.state()).openPorts]).toEqual([[at], [at]]);
    await cleanUp(tools, await simulated.state());
    expect(simulated.steps.map((step) => step.do)).toEqual(['open-port', 'close-port']);
    expect((await simulated.state()).openPorts).toEqual([]);
  });

  it('is not in the state when opening fails, and stays there when closing fails, with warnings', async () => {
    const { simulated, tools, warnings, settle } = await deskWith();
    simulated.refusesStep = () => true;
    expect((await settle()).changes).toEqual([]);
    expect((await simulated.state()).openPorts).toEqual([]);
    simulated.refusesStep = () => false;
    await settle();
    simulated.refusesStep = ({ do: what }) => what === 'close-port';
    await cleanUp(tools, await simulated.state());
    expect((await simulated.state()).openPorts).toEqual([at]);
    expect(warnings).toEqual([expect.stringMatching(/^open-port /), expect.stringMatching(/^close-port /)]);
  });

  it('is queried only when it is to be open', async () => {
    const { simulated, tools, settle } = await deskWith({ options: { ...wishing, openFirewall: false } });
    tools.host.portStates = async () => {
      throw new Error('asked');
    };
    expect((await settle()).changes).toEqual([]);
    expect(simulated.steps).toEqual([]);
  });

  it('keeps nothing else from working: what firewall programs refuse, lack or fail at is said', async () => {
    const { simulated, tools, warnings, settle } = await deskWith();
    simulated.ports = [{ at, is: 'refused' }];
    await settle();
    simulated.ports = [];
    await settle();
    tools.host.portStates = async () => {
      throw new CommandFailed('ufw', 1, 'no');
    };
    await settle();
    expect(simulated.steps).toEqual([]);
    expect(warnings).toEqual([
      'a rule of ufw refuses UDP to port 51820, and cpn does not change it; remove it so that peers can dial this host',
      expect.stringMatching(/^neither ufw nor firewalld is active on this host/),
      expect.stringMatching(/^ufw /),
    ]);
  });

  it('must be one that is chosen', () => {
    expect(() => refuseUnfixedPort({ ...wishing, listenPort: null })).toThrow(
      /add --endpoint HOST:PORT or --listen-port/,
    );
    expect(() => refuseUnfixedPort(wishing)).not.toThrow();
    expect(() => refuseUnfixedPort(options)).not.toThrow();
  });
});
