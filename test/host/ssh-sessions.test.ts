import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { sshArgs, startDropbear, startSshd } from '../lab/ssh-server.ts';
import { Machine } from './machine.ts';
import { bounded } from './watching.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

/** A host with OpenSSH on ports 22 and 2222, and Dropbear on port 2223. Each client has a loopback address of its own. */
let machine: Machine;
const keys = '/run/ssh-keys';
const [openSshPort, dropbearPort] = [2222, 2223];

beforeAll(async () => {
  machine = await Machine.start();
  await machine.sh(startSshd(keys, 22, openSshPort));
  await machine.sh(startDropbear(keys, dropbearPort));
});

afterAll(() => machine?.[Symbol.asyncDispose]());

const addresses = async () => new Set((await machine.host.sshClients()).map(({ address }) => address));

/** Logs in and stays. */
async function logIn(from: string, port: number, user: string, ...args: string[]): Promise<void> {
  const command = sshArgs(
    keys,
    '-b',
    from,
    '-p',
    String(port),
    ...args.filter((each) => each === '-N'),
    `${user}@127.0.0.1`,
  );
  const rest = args.filter((each) => each !== '-N');
  await machine.sh(`timeout 50 ${[...command, ...rest].join(' ')} </dev/null >/dev/null 2>${keys}/${from}.log &`);
}

/** Connects, sends a text, and stays without logging in; returns once the server answered. */
async function connect(from: string, port: number, text: string): Promise<void> {
  const script = `const socket = require('net').connect({ host: '127.0.0.1', port: ${port}, localAddress: '${from}' });
    socket.write('${text}'); socket.once('data', () => console.log('answered'))`;
  await machine.sh(`timeout 50 ${process.execPath} -e "${script}" >${keys}/${from}.log 2>&1 &
    for try in $(seq 200); do grep -q answered ${keys}/${from}.log && exit; sleep 0.05; done; cat ${keys}/${from}.log; exit 1`);
}

describe('SSH sessions', () => {
  test('are the connections of OpenSSH and Dropbear whose clients logged in, with a program or without', async () => {
    await connect('127.0.0.31', 22, '');
    await connect('127.0.0.32', openSshPort, 'SSH-2.0-none\\r\\n');
    await connect('127.0.0.33', dropbearPort, 'SSH-2.0-none\\r\\n');
    await logIn('127.0.0.21', 22, 'root', '-N');
    await logIn('127.0.0.22', openSshPort, 'root', 'sleep 50');
    await logIn('127.0.0.23', openSshPort, 'games', '-N');
    await logIn('127.0.0.24', dropbearPort, 'root', '-N');
    await logIn('127.0.0.25', dropbearPort, 'root', 'sleep 50');
    const sessions = new Set(['21', '22', '23', '24', '25'].map((each) => `127.0.0.${each}`));
    await vi.waitFor(async () => expect(await addresses()).toEqual(sessions), bounded);
    // The servers still hold the others.
    const held = await machine.sh('cat /proc/net/tcp');
    for (const [client, port] of [
      ['1F', '0016'],
      ['20', '08AE'],
      ['21', '08AF'],
    ] as const)
      expect(held).toMatch(new RegExp(`0100007F:${port} ${client}00007F:[0-9A-F]{4} 01 `));
  });

  test('are none of a process of another user, whatever it calls itself', async () => {
    // Perl is on every Debian, and a copy of it has the name of its file. The first argument is the title of a session.
    const serve = (port: number, client: string, start: string) => `mkdir -p /run/forged
      [ -e /run/forged/sshd ] || cp "$(readlink -f /usr/bin/perl)" /run/forged/sshd; chmod 755 /run/forged /run/forged/sshd
      timeout 50 ${start} bash -c 'exec -a "sshd: root@pts/0" /run/forged/sshd -MIO::Socket::INET -e "$0"' '
        my $server = IO::Socket::INET->new(LocalAddr => "127.0.0.1:${port}", Listen => 5) or die;
        my $client = IO::Socket::INET->new(PeerAddr => "127.0.0.1:${port}", LocalAddr => "${client}") or die;
        my $session = $server->accept(); $| = 1; print "open\n"; sleep 50;' >${keys}/forged-${port} 2>&1 &
      for try in $(seq 200); do grep -q open ${keys}/forged-${port} && exit; sleep 0.05; done; cat ${keys}/forged-${port}; exit 1`;
    await machine.sh(serve(2224, '127.0.0.41', 'setpriv --reuid games --regid games --clear-groups'));
    // The same program counts where root started it.
    await machine.sh(serve(2225, '127.0.0.42', ''));
    expect(await addresses()).toContain('127.0.0.42');
    expect(await addresses()).not.toContain('127.0.0.41');
  });

  test('are all connections to port 22 where the processes of the servers cannot be seen', async () => {
    // As in a container that has the network of its host, and not its processes.
    const module = join(import.meta.dirname, '../../src/host/linux/ssh-clients.ts');
    const read = `import('${module}').then(({ readSshClients }) => readSshClients()).then((all) => console.log(JSON.stringify(all)))`;
    const printed = await machine.sh(`unshare --pid --fork --mount-proc ${process.execPath} -e "${read}"`);
    const clients = (JSON.parse(printed) as { address: string }[]).map(({ address }) => address);
    expect(clients.toSorted()).toEqual(['127.0.0.21', '127.0.0.31']);
  });
});
