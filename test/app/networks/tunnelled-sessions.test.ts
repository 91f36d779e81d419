import { expect, it } from 'vitest';
import { describeSessionsAtStake } from '../../../src/app/networks/tunnelled-sessions.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { CommandFailed } from '../../../src/core/errors/index.ts';
import { address, dialled, peer } from '../../core/samples.ts';
import { answerWith, Desk, joinedTo, mapAt, self } from '../desk.ts';

const map = mapAt('"1"', [peer(2, { endpoint: dialled(2) })]);
const session = (client: string) => ({ address: address(client), local: self.address });

async function start() {
  const desk = await Desk.with(joinedTo(map));
  desk.answers = [answerWith(map)];
  await passNetwork(desk.tools, 'cpn0', noUpdate, { withinMs: 20_000 });
  return { desk, describe: async (tools = desk.tools) => describeSessionsAtStake(tools, [await desk.state()]) };
}

it('names the SSH sessions that end with the tunnel, each client once', async () => {
  const { desk, describe } = await start();
  desk.sshClients = [{ address: address('198.51.100.7'), local: address('203.0.113.22') }];
  expect(await describe()).toBeNull();
  desk.sshClients = [...desk.sshClients, session('10.77.0.2')];
  expect(await describe()).toBe('The SSH session from 10.77.0.2 goes through the tunnel, and ends.');
  desk.sshClients = [session('10.77.0.2'), session('10.77.0.3'), { ...session('10.77.0.3'), local: null }];
  expect(await describe()).toBe('SSH sessions from 10.77.0.2, 10.77.0.3 go through the tunnel, and end.');
});

it('without a session the host is not observed', async () => {
  const { desk, describe } = await start();
  const before = desk.observations;
  expect(await describe()).toBeNull();
  expect(desk.observations).toBe(before);
});

it('names a session from the range of the network where the host cannot be observed', async () => {
  const { desk, describe } = await start();
  desk.sshClients = [
    { address: address('10.77.0.2'), local: null },
    { address: address('198.51.100.7'), local: null },
  ];
  const observe = () => Promise.reject(new CommandFailed('ip link show cpn0', 1, 'no'));
  expect(await describe({ ...desk.tools, host: { ...desk.tools.host, observe } })).toMatch(
    /session from 10\.77\.0\.2 /,
  );
});
