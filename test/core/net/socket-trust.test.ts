import { expect, test } from 'vitest';
import { findOpenFolder, type SocketFolder } from '../../../src/core/net/socket-trust.ts';

const folder = (path: string, user: number, mode: number): SocketFolder => ({ path, user, mode: 0o040000 | mode });
const root = folder('/', 0, 0o755);
const run = folder('/run', 0, 0o755);
const isTrusted = (user: number) => user === 0 || user === 990;

test.each([
  ['folders of root', [root, run], null],
  ["a folder of the socket's owner", [root, run, folder('/run/cp', 990, 0o750)], null],
  ['a sticky folder that all may write in', [root, folder('/tmp', 0, 0o1777)], null],
  ['a folder that all may write in', [root, folder('/srv', 0, 0o757)], '/srv mode'],
  ['a folder that a group may write in', [root, run, folder('/run/cp', 990, 0o775)], '/run/cp mode'],
  ["another user's folder", [root, run, folder('/run/cp', 1001, 0o755)], '/run/cp owner'],
  ["another user's sticky folder", [root, folder('/srv', 1001, 0o1777)], '/srv owner'],
  [
    "a folder of root in another user's",
    [root, folder('/home/m', 1001, 0o755), folder('/home/m/cp', 0, 0o755)],
    '/home/m owner',
  ],
])('%s', (_what, folders, expected) => {
  const open = findOpenFolder(folders, isTrusted);
  expect(open && `${open.folder.path} ${open.why}`).toBe(expected);
});
