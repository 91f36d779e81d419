import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join as path } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { join } from '../../../src/cli/commands/join.ts';
import { parseJoinFile, readJoinFile } from '../../../src/cli/input/join-file.ts';

const parse = (text: string) => parseJoinFile(text, 'join.conf', join.flags);

it('every line is a flag by its variable', () => {
  const text = `# comment\n\napi = https://cp.example.net\n  listen-port=51820 \nname = a = b\nallow-route = 10.0.0.0/8\nallow-route = 10.1.0.0/16\nkey = file:/etc/cpn/key\r\n`;
  expect(parse(text)).toEqual({
    CPN_API: 'https://cp.example.net',
    CPN_LISTEN_PORT: '51820',
    CPN_NAME: 'a = b',
    CPN_ALLOW_ROUTE: '10.0.0.0/8,10.1.0.0/16',
    CPN_ENROLLMENT_KEY: 'file:/etc/cpn/key',
  });
});

it('the example is a valid join file', () => {
  const example = readFileSync(path(import.meta.dirname, '../../../packaging/examples/join.conf'), 'utf8');
  expect(Object.keys(parse(example))).toEqual(['CPN_API', 'CPN_TYPE', 'CPN_ENROLLMENT_KEY']);
});

it.each([
  ['type: origin', 'line 1: is not NAME = VALUE'],
  ['\nkind = origin', 'line 2: there is no "kind"'],
  ['constructor = 1', 'line 1: there is no "constructor"'],
  ['type =', 'line 1: type has no value'],
  ['type = origin\ntype = connector', 'line 2: type is given twice'],
  ['key = cpn_canary', 'line 1: this file must not contain the key'],
])('%j is refused with its line, and without its value', (text, message) => {
  expect(() => parse(text)).toThrow(`join.conf, ${message}`);
  expect(() => parse(text)).not.toThrow('canary');
});

it('a file that is not there, or too large, is said to be so', async () => {
  const folder = await mkdtemp(path(tmpdir(), 'cpn-join-file-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(path(folder, 'large'), '#'.repeat(70_000));
  await expect(readJoinFile(path(folder, 'none'), join.flags)).rejects.toThrow('cannot be read (ENOENT)');
  await expect(readJoinFile(path(folder, 'large'), join.flags)).rejects.toThrow('cannot be read (EFBIG)');
});
