export interface TarEntry {
  /** With folders, at most 100 bytes. */
  readonly path: string;
  readonly content: Uint8Array;
}

const block = 512;

/**
 * Creates a ustar archive (POSIX.1-1988, tar(5)) of files that only root may read. `modified` is in
 * seconds since the epoch.
 */
export function packTar(entries: readonly TarEntry[], modified: number): Uint8Array {
  const parts = entries.flatMap(({ path, content }) => [
    header(path, content.length, modified),
    content,
    new Uint8Array((block - (content.length % block)) % block),
  ]);
  // Two empty blocks end the archive.
  const all = [...parts, new Uint8Array(2 * block)];
  const archive = new Uint8Array(all.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of all) {
    archive.set(part, at);
    at += part.length;
  }
  return archive;
}

function header(path: string, size: number, modified: number): Uint8Array {
  const bytes = new Uint8Array(block);
  const write = (text: string, at: number) => bytes.set(new TextEncoder().encode(text), at);
  const octal = (number: number, length: number) => `${number.toString(8).padStart(length - 1, '0')}\0`;
  write(path, 0);
  write(octal(0o600, 8), 100);
  write(octal(0, 8), 108);
  write(octal(0, 8), 116);
  write(octal(size, 12), 124);
  write(octal(modified, 12), 136);
  // The checksum is computed with spaces in its place.
  write('        ', 148);
  write('0', 156);
  write('ustar\x0000', 257);
  const sum = bytes.reduce((total, byte) => total + byte, 0);
  write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return bytes;
}
