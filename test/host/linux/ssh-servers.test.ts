import { describe, expect, it } from 'vitest';
import { noFiles } from '../../../src/host/linux/process-files.ts';
import { judgeConnections, type SshCandidate, selectServers } from '../../../src/host/linux/ssh-servers.ts';

const server = (pid: string, parent: string, isRoot: boolean, program = 'sshd'): SshCandidate => {
  return { pid, parent, isRoot, program };
};

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

  it('is looked for in processes of root, and in a Dropbear below one: a user may open thousands of files in a program called sshd', () => {
    const found = selectServers([
      ...[server('1', '0', true), server('2', '1', false), server('3', '9', false), server('4', '3', false)],
      ...[server('5', '0', true, 'dropbear'), server('6', '5', false, 'dropbear'), server('7', '9', false, 'dropbear')],
    ]);
    expect(found.map(({ pid, holds }) => `${pid} ${holds}`)).toEqual(['1 true', '2 false', '5 true', '6 true']);
  });
});
