import type { Stats } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { Secret } from '../../core/crypto/secret.ts';
import { WrongUsage } from '../../core/errors/index.ts';
import { warn } from '../output/output.ts';

/** Bytes. Beyond any key, token, password or URL. */
const mostBytes = 64 * 1024;

/** Reads a secret from the text itself, `file:PATH`, or standard input for `-`. Trims it. */
export async function readSecret(given: string, what: string): Promise<Secret> {
  if (given === '-')
    return toSecret((await readShort(process.stdin, what)).toString('utf8'), `${what} on standard input`);
  if (given.startsWith('file:')) return readSecretFile(given.slice('file:'.length), what);
  return toSecret(given, what);
}

/** Reads a secret from a file that contains nothing else. Trims it. */
export async function readSecretFile(path: string, what: string): Promise<Secret> {
  return toSecret((await readSecretBytes(path, what)).toString('utf8'), `${what} in ${path}`);
}

/** As {@link readSecretFile}, for a service, such as its TLS key. Refuses other readers. */
export async function readPrivateFile(path: string, what: string): Promise<Secret> {
  const bytes = await readFileOnce(path, what, (stats) => {
    // A file of root may be readable by its group.
    const isPrivate = (stats.mode & (stats.uid === 0 ? 0o027 : 0o077)) === 0;
    if (isPrivate || !stats.isFile()) return;
    throw new WrongUsage(`${path} can be read by others (mode ${formatMode(stats.mode)}); type: chmod 600 ${path}`);
  });
  return toSecret(bytes.toString('utf8'), `${what} in ${path}`);
}

/** Reads a whole file with a secret. Warns if every user of this machine can read or write it. */
export async function readSecretBytes(path: string, what: string): Promise<Buffer> {
  return readFileOnce(path, what, (stats) => {
    if (stats.isFile() && (stats.mode & 0o006) !== 0) {
      warn(
        `other users can read or write ${path} (mode ${formatMode(stats.mode)}), which holds ${what}; run: chmod 600 ${path}`,
      );
    }
  });
}

/** Reads a short file, and checks the status of the same open file. */
export async function readFileOnce(path: string, what: string, check: (stats: Stats) => void): Promise<Buffer> {
  let file: FileHandle | undefined;
  try {
    file = await open(path);
    check(await file.stat());
    return await readShort(file.createReadStream({ autoClose: false }), what);
  } catch (error) {
    if (error instanceof WrongUsage) throw error;
    const { code } = error as NodeJS.ErrnoException;
    throw new WrongUsage(`${what} cannot be read from ${path} (${code}); check the path and its permissions`);
  } finally {
    await file?.close();
  }
}

const formatMode = (mode: number): string => (mode & 0o777).toString(8).padStart(4, '0');

/** Bounded, so that /dev/zero cannot fill the memory. */
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

/** As {@link readSecret}. Names typical copy errors: a control plane reports only a wrong key. */
export async function readToken(given: string, what: string): Promise<Secret> {
  return checkToken(await readSecret(given, what), what);
}

/** Applies the checks of {@link readToken}. @throws WrongUsage */
export function checkToken(token: Secret, what: string): Secret {
  const problem = describeFault(token.reveal());
  if (problem === null) return token;
  throw new WrongUsage(`${what} ${problem}; give it alone, as one word`);
}

function describeFault(text: string): string | null {
  // A key is its prefix and 43 characters.
  const isTwo = /(?:^|[^\w-])(cp[nptu]_).*[^\w-]\1/su.test(text) || /^(cp[nptu]_)[\w-]{43}\1./.test(text);
  if (isTwo) return 'contains more than one key';
  if (/^[\w.~+/=|:-]+$/.test(text)) return null;
  if (/^(["'`]).*\1$/su.test(text)) return 'is in quotation marks';
  const [unseen] = /[^\P{C}\s]|\u3164/u.exec(text) ?? [];
  if (unseen !== undefined) return `has an invisible character (${codePointOf(unseen)})`;
  return /\s/.test(text) ? 'contains whitespace' : 'has a character that is not valid in a key';
}

const codePointOf = (character: string): string =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;

function toSecret(given: string, what: string): Secret {
  const value = given.trim();
  if (value === '') throw new WrongUsage(`${what} is empty`);
  return new Secret(value);
}
