/** An architecture by the names that each world gives it. */
export interface Architecture {
  readonly debian: 'amd64' | 'arm64';
  readonly rpm: 'x86_64' | 'aarch64';
  readonly node: 'x64' | 'arm64';
  /** e_machine of ELF(5). */
  readonly machine: number;
}

export const architectures: readonly Architecture[] = [
  { debian: 'amd64', rpm: 'x86_64', node: 'x64', machine: 62 },
  { debian: 'arm64', rpm: 'aarch64', node: 'arm64', machine: 183 },
];

/**
 * The machine that an ELF file of little-endian byte order is for; null for what is no such file.
 */
export function readMachine(head: Uint8Array): number | null {
  const bytes = Buffer.from(head);
  const isElf = bytes.length >= 20 && bytes.readUInt32BE(0) === 0x7f454c46 && bytes[5] === 1;
  return isElf ? bytes.readUInt16LE(18) : null;
}
