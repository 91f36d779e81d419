import { type FileHandle, open } from 'node:fs/promises';
import { Secret } from '../../core/crypto/secret.ts';
import { WrongUsage } from '../../core/errors/index.ts';
import { warn } from '../output/output.ts';

/** More than any key, token, password or URL has. */
const mostBytes = 64 * 1024;

/** Reads a secret given as itself, as `file:PATH`, or as `-` for standard input; white space around it is dropped. */
export async function readSecret(given: string, what: string): Promise<Secret> {
  if (given === '-')
    return toSecret((await readShort(process.stdin, what)).toString('utf8'), `${what} on standard input`);
  if (given.startsWith('file:')) return readSecretFile(given.slice('file:'.length), what);
  return toSecret(given, what);
}

/** Reads a secret that is alone in a file; white space around it is dropped. */
export async function readSecretFile(path: string, what: string): Promise<Secret> {
  return toSecret((await readSecretBytes(path, what)).toString('utf8'), `${what} in ${path}`);
}

/** Reads a file that holds a secret, all of it, and warns of one that every user of this machine can read or write. */
export async function readSecretBytes(path: string, what: string): Promise<Buffer> {
  let file: FileHandle | undefined;
  try {
    file = await open(path);
    const stats = await file.stat();
    if (stats.isFile() && (stats.mode & 0o006) !== 0) {
      const mode = (stats.mode & 0o777).toString(8).padStart(4, '0');
      warn(`other users can read or write ${path} (mode ${mode}), which holds ${what}; run: chmod 600 ${path}`);
    }
    return await readShort(file.createReadStream({ autoClose: false }), what);
  } catch (error) {
    if (error instanceof WrongUsage) throw error;
    const { code } = error as NodeJS.ErrnoException;
    throw new WrongUsage(`${what} cannot be read from ${path} (${code}); check the path and its permissions`);
  } finally {
    await file?.close();
  }
}

/** Bounded: /dev/zero must not fill the memory. */
async function readShort(source: AsyncIterable<Buffer>, what: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of source) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > mostBytes) throw new WrongUsage(`${what} is longer than ${mostBytes / 1024} KiB`);
  }
  return Buffer.concat(chunks);
}

function toSecret(given: string, what: string): Secret {
  const value = given.trim();
  if (value === '') throw new WrongUsage(`${what} is empty`);
  return new Secret(value);
}
