import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { escapeUnshapely, printJson } from '../../../src/cli/output/output.ts';

/** DEL, two C1 controls, an override of the writing direction, a line separator, a byte order mark, an invisible tag, three fillers. */
const evil = 'a\u007f\u0085\u009b31m\u202e\u2028\ufeff\u{e0041}\u3164\u2800\u{e0100}z';
const harmless = 'a\\u007f\\u0085\\u009b31m\\u202e\\u2028\\ufeff\\udb40\\udc41\\u3164\\u2800\\udb40\\udd00z';

test('what a terminal would obey is an escape in JSON, and means the same', () => {
  const json = JSON.stringify({ evil, plain: 'Zürich 東京 🙂\n\t\u001b' });
  expect(escapeUnshapely(json)).toBe(json.replace(evil, harmless));
  expect(JSON.parse(escapeUnshapely(json))).toEqual(JSON.parse(json));
});

test('so it is in a document on stdout', () => {
  const written: string[] = [];
  const write = vi.spyOn(process.stdout, 'write').mockImplementation((text) => written.push(String(text)) > 0);
  printJson({ name: evil });
  write.mockRestore();
  expect(written).toEqual([`{\n  "name": "${harmless}"\n}\n`]);
});

test('so it is in the log', () => {
  const script = `
    import { Input } from './input/input.ts';
    import { openLog } from './output/log.ts';
    openLog(new Input({}, {}, {}), 'info').info({ name: ${JSON.stringify(evil)} }, 'joined');`;
  const { stderr } = spawnSync(
    process.execPath,
    ['--input-type=module', '-e', script.replaceAll("'./", `'${join(import.meta.dirname, '../../../src/cli')}/`)],
    { encoding: 'utf8' },
  );
  expect(stderr).toContain(`"name":"${harmless}"`);
  expect(JSON.parse(stderr)).toMatchObject({ name: evil, msg: 'joined' });
});
