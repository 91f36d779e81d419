import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The modules that the build replaces, each by a file of this folder, which has its reason and its
 * gain.
 */
export const patches = {
  undici$: join(import.meta.dirname, 'undici.cjs'),
  'node:http2': join(import.meta.dirname, 'http2.cjs'),
  'string-width$': join(import.meta.dirname, 'string-width.cjs'),
};

/**
 * Compares the files that the patches were written for with their sums in `originals.sha256`.
 *
 * @param modules the folder `node_modules`
 * @throws Error that names the first file with another sum
 */
export function checkOriginals(modules: string): void {
  const sums = readFileSync(join(import.meta.dirname, 'originals.sha256'), 'utf8');
  for (const [, sum, file = ''] of sums.matchAll(/^([0-9a-f]{64}) {2}(.+)$/gm)) {
    const found = createHash('sha256')
      .update(readFileSync(join(modules, file)))
      .digest('hex');
    if (found === sum) continue;
    throw new Error(
      `node_modules/${file} is not the file that packaging/patches were written for: its SHA-256 is ${found}; ` +
        'compare the patches with it, then change packaging/patches/originals.sha256',
    );
  }
}
