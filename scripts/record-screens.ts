import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { recordScreens, screensIn, withScreens } from '../test/e2e/screens.ts';

/**
 * Records the screens that README and docs show, from a network of hosts in namespaces, and puts
 * them in their places.
 */
const root = join(import.meta.dirname, '..');
const screens = await recordScreens();
for (const name of ['README.md', 'docs/screens.md']) {
  const path = join(root, name);
  const text = withScreens(await readFile(path, 'utf8'), screens);
  await writeFile(path, text);
  process.stdout.write(`${name}: ${[...screensIn(text).keys()].join(', ')}\n`);
}
