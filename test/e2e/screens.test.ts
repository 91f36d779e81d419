import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { essenceOf, recordScreens, screensIn } from './screens.ts';

const root = join(import.meta.dirname, '../..');

it("README and docs have the program's present screens; scripts/record-screens updates them", async () => {
  const screens = await recordScreens();
  const now = new Map(screens.map(({ name, text }) => [name, essenceOf(text)]));
  const shownIn = async (name: string) => screensIn(await readFile(join(root, name), 'utf8'));
  const [readme, docs] = [await shownIn('README.md'), await shownIn('docs/screens.md')];
  expect([...docs.keys()]).toEqual([...now.keys()]);
  expect([...readme.keys()]).toEqual(['status']);
  for (const [name, text] of [...docs, ...readme]) expect([name, essenceOf(text)]).toEqual([name, now.get(name)]);
});
