import { describe, expect, it } from 'vitest';
import { noFiles } from '../../../src/host/linux/process-files.ts';
import {
  judgeConnections,
  type SshCandidate,
  selectServers,
  sshPrograms,
} from '../../../src/host/linux/ssh-servers.ts';

const server = (pid: string, parent: string, isRoot: boolean, program = 'sshd'): SshCandidate => {
  return { pid, parent, isRoot, program };
};

it('the programs of SSH servers are those of OpenSSH, whose newer versions have several, and of Dropbear', () => {
  for (const name of ['sshd', 'sshd-session', 'sshd-auth', 'dropbear', 'dropbearmulti'])
    expect([name, sshPrograms.has(name)]).toEqual([name, true]);
  for (const name of ['ssh', 'ssh-agent', 'sshd-', 'bash'])
    expect([name, sshPrograms.has(name)]).toEqual([name, false]);
});

describe('the connection of an SSH server', () => {
  it.each([
    ['sshd: root@pts/0', true],
    ['sshd: alice [priv]', true],
    ['sshd-session: alice [priv]', true],
    ['sshd: [accepted]', false],
    ['sshd: [rexeced]', false],
    ['sshd-session: [rexeced]', false],
    ['sshd: /usr/sbin/sshd -D [listener] 4 of 10-100 startups', false],
    ['/usr/sbin/sshd -D -R', false],
  ])('with the title %s is a session: %s', (title, expected) => {
    const process = { ...server('7', '1', true), title, ...noFiles, sockets: new Set(['42']) };
    expect(judgeConnections([process]).loggedIn.has('42')).toBe(expected);
  });

  it.each([
    ['sshd: alice [net]', 'sshd', false],
    ['sshd-session: alice [net]', 'sshd-session', false],
    ['sshd-session: alice [session-auth early]', 'sshd-session', false],
    ['sshd-auth: alice [preauth]', 'sshd-auth', false],
    ['sshd: alice@pts/0', 'sshd', true],
    ['-bash', 'sshd', true],
  ])('is a session unless a child talks to a client that did not log in: %s', (title, program, expected) => {
    const monitor = { ...server('7', '1', true), title: 'sshd: alice [priv]', ...noFiles, sockets: new Set(['42']) };
    const child = { ...server('8', '7', false, program), title, ...noFiles };
    const stranger = { ...server('9', '1', false, 'sshd-auth'), title: 'sshd: bob [net]', ...noFiles };
    expect(judgeConnections([monitor, child, stranger]).loggedIn.has('42')).toBe(expected);
  });

  it.each([
    ['its end of the pipe to the server is open', ['5'], ['5'], [], false],
    ['that pipe is closed', [], ['5'], [], true],
    ['the pipe leads elsewhere', ['5'], ['6'], [], true],
    ['the pipe was inherited: the server has this end too', ['5'], ['5'], ['5'], true],
  ])('of Dropbear is a session or not: %s', (_, writes, reads, serverWrites, expected) => {
    const files = (readPipes: string[], writePipes: string[], sockets: string[] = []) => ({
      ...{ readPipes: new Set(readPipes), writePipes: new Set(writePipes), sockets: new Set(sockets) },
    });
    for (const program of ['dropbear', 'dropbearmulti']) {
      const parent = { ...server('1', '0', true, program), title: program, ...files(reads, serverWrites) };
      const child = { ...server('2', '1', false, program), title: program, ...files([], writes, ['42']) };
      expect(judgeConnections([parent, child]).loggedIn.has('42')).toBe(expected);
    }
  });

  it("of a server that is not root's is none", () => {
    const own = { ...server('7', '1', false), title: 'sshd: alice [priv]', ...noFiles, sockets: new Set(['42']) };
    expect(judgeConnections([own])).toEqual({ loggedIn: new Set(), known: new Set(['42']) });
  });

  it('is looked for in processes of root, and in a Dropbear below one: a user may open thousands of files in a program called sshd', () => {
    const found = selectServers([
      ...[server('1', '0', true), server('2', '1', false), server('3', '9', false), server('4', '3', false)],
      ...[server('5', '0', true, 'dropbear'), server('6', '5', false, 'dropbear'), server('7', '9', false, 'dropbear')],
    ]);
    expect(found.map(({ pid, holds }) => `${pid} ${holds}`)).toEqual(['1 true', '2 false', '5 true', '6 true']);
  });
});
