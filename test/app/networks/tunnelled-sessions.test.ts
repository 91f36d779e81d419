import { expect, it } from 'vitest';
import { describeSessionsAtStake } from '../../../src/app/networks/tunnelled-sessions.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { CommandFailed } from '../../../src/core/errors/index.ts';
import { address, dialled, peer, prefix } from '../../core/samples.ts';
import { joinedTo, mapAt, self } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith } from '../simulated-service.ts';

const map = mapAt('"1"', [peer(2, { endpoint: dialled(2) })]);
const session = (client: string) => ({ address: address(client), local: self.address });

async function start() {
  const simulated = await SimulatedHost.with(joinedTo(map));
  simulated.service.mapReplies = [answerWith(map)];
  await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 20_000 });
  return {
    simulated,
    describe: async (tools = simulated.tools) => describeSessionsAtStake(tools, [await simulated.state()]),
  };
}

it('names the SSH sessions that end with the tunnel, each client once', async () => {
  const { simulated, describe } = await start();
  simulated.sshClients = [{ address: address('198.51.100.7'), local: address('203.0.113.22') }];
  expect(await describe()).toBeNull();
  simulated.sshClients = [...simulated.sshClients, session('10.77.0.2')];
  expect(await describe()).toBe('The SSH session from 10.77.0.2 goes through the tunnel, and ends.');
  simulated.sshClients = [session('10.77.0.2'), session('10.77.0.3'), { ...session('10.77.0.3'), local: null }];
  expect(await describe()).toBe('SSH sessions from 10.77.0.2, 10.77.0.3 go through the tunnel, and end.');
});

it('without a session the host is not observed', async () => {
  const { simulated, describe } = await start();
  const before = simulated.observations;
  expect(await describe()).toBeNull();
  expect(simulated.observations).toBe(before);
});

it('names a session from the range of the network where the host cannot be observed', async () => {
  const { simulated, describe } = await start();
  simulated.sshClients = [
    { address: address('10.77.0.2'), local: null },
    { address: address('198.51.100.7'), local: null },
  ];
  const observe = () => Promise.reject(new CommandFailed('ip link show cpn0', 1, 'no'));
  expect(await describe({ ...simulated.tools, host: { ...simulated.tools.host, observe } })).toMatch(
    /session from 10\.77\.0\.2 /,
  );
});

it('names a session by its own end in the tunnel where only WireGuard can be observed', async () => {
  const { simulated, describe } = await start();
  simulated.sshClients = [
    { address: address('198.51.100.7'), local: self.address },
    { address: address('198.51.100.8'), local: address('203.0.113.22') },
    { address: address('10.77.0.2'), local: null },
  ];
  simulated.actual = { ...simulated.actual, unread: 'no', routes: [], link: null };
  expect(await describe()).toMatch(/^SSH sessions from 198\.51\.100\.7, 10\.77\.0\.2 go through/);
});

it('names the sessions of each network that goes down', async () => {
  const { simulated } = await start();
  const { tools } = simulated;
  tools.host.observe = () => Promise.reject(new CommandFailed('ip link show', 1, 'no'));
  simulated.sshClients = [{ address: address('10.88.0.2'), local: null }];
  const other = joinedTo({ ...map, cidr: prefix('10.88.0.0/24') }, { interface: 'cpn1' });
  expect(await describeSessionsAtStake(tools, [await simulated.state(), other])).toMatch(/session from 10\.88\.0\.2 /);
});
