import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { WrongUsage } from '../core/errors.ts';
import { Secret } from '../core/secret.ts';

/** Reads a secret given as itself, as `file:PATH`, or as `-` for standard input; white space around it is dropped. */
export async function readSecret(given: string, what: string): Promise<Secret> {
  if (given === '-') return toSecret(await text(process.stdin), `${what} on standard input`);
  if (given.startsWith('file:')) return readSecretFile(given.slice('file:'.length), what);
  return toSecret(given, what);
}

/** Reads a secret that is alone in a file. */
export async function readSecretFile(path: string, what: string): Promise<Secret> {
  try {
    return toSecret(await readFile(path, 'utf8'), `${what} in ${path}`);
  } catch (error) {
    if (error instanceof WrongUsage) throw error;
    const { code } = error as NodeJS.ErrnoException;
    throw new WrongUsage(`${what} cannot be read from ${path} (${code}); check the path and its permissions`);
  }
}

function toSecret(given: string, what: string): Secret {
  const value = given.trim();
  if (value === '') throw new WrongUsage(`${what} is empty`);
  return new Secret(value);
}
