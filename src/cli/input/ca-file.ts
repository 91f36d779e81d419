import { WrongUsage } from '../../core/errors/index.ts';
import type { Input } from './input.ts';
import { readFileOnce } from './secrets.ts';

/** Bytes, enough for some 40 certificates. */
const mostBytes = 64 * 1024;

/**
 * Reads the CAs of `--ca-file` or CPN_CA_FILE, each in PEM. Null for `none`, undefined if neither
 * is given.
 *
 * @throws InvalidValue unless the file contains CAs
 */
export async function readCaFile(input: Input): Promise<readonly string[] | null | undefined> {
  const path = input.text('ca-file');
  if (path === undefined) return undefined;
  if (path === 'none') return null;
  const from = `${input.nameOf('ca-file')} ${path}`;
  const content = await readFileOnce(path, 'the file of --ca-file', ({ size }) => {
    if (size <= mostBytes) return;
    const remedy = 'name the CA of the control plane alone; those of this machine are trusted without --ca-file';
    throw new WrongUsage(`${from} is larger than ${mostBytes / 1024} KiB; ${remedy}`);
  });
  const { parseAuthorities } = await import('../../core/tls/authority-file.ts');
  return parseAuthorities(content, from, Date.now());
}
