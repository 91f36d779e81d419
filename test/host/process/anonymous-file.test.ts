import { expect, test } from 'vitest';
import {
  checkUncut,
  openAnonymousFile,
  readAnonymousFile,
  writeAnonymousFile,
} from '../../../src/host/process/anonymous-file.ts';

test.each([true, false])(
  'an anonymous file is closed once: its descriptor may be of another file by then',
  (isLinux) => {
    const first = openAnonymousFile('first', isLinux);
    first.close();
    const second = openAnonymousFile('second', isLinux);
    expect(second.fd).toBe(first.fd);
    first.close();
    expect(readAnonymousFile(second, 100)).toBe('second');
    second.close();
  },
);

test('new content replaces all of the former one, at the beginning', () => {
  const file = openAnonymousFile('a long secret');
  for (const text of ['short', '', 'ünd', 'longer than all of them']) {
    writeAnonymousFile(file, text);
    expect(readAnonymousFile(file, 100)).toBe(text);
  }
  file.close();
});

test.each([0, 511, 512, 513, 1024])('the check of an output of %d bytes leaves it as it is', (size) => {
  const text = 'x'.repeat(size);
  const file = openAnonymousFile(text);
  checkUncut(file);
  expect(readAnonymousFile(file, 2048)).toBe(text);
  file.close();
});
