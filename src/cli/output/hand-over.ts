import { WrongUsage } from '../../core/errors/index.ts';
import type { ExportedFiles, Format } from '../../core/export/format.ts';
import type { Input } from '../input/input.ts';
import { makeSecretFile, type SecretFile } from '../input/secret-file.ts';
import { note, printAll, warnReadable } from './output.ts';
import { columnsOf } from './terminal/fit.ts';

export interface Recipient {
  /** @throws WrongUsage if such files do not fit; nothing is written */
  check(files: ExportedFiles): void;
  /** @throws WrongUsage if they do not fit, or DiskFailed; no part of them remains */
  handOver(files: ExportedFiles): Promise<void>;
  /** Restores the target if there is nothing to write. */
  cancel(): Promise<void>;
}

/**
 * Chooses the target by the flags, and checks it before any other work. A terminal shows a private
 * key only as a QR code, because text remains in its scrollback.
 */
export async function findRecipient(input: Input, format: Format): Promise<Recipient> {
  const output = input.text('output');
  if (input.switch('qr')) {
    if (output !== undefined) throw new WrongUsage('--qr is for the screen, --output for a file; give one of them');
    if (format !== 'wg-quick') throw new WrongUsage(`--qr is for --format wg-quick only; leave out one of them`);
    return screen();
  }
  if (output !== undefined) return filesAt(output, format);
  if (format === 'networkd') {
    throw new WrongUsage(
      'systemd-networkd needs two files; name the first with --output, such as /etc/systemd/network/70-wg0.netdev',
    );
  }
  if (process.stdout.isTTY) {
    throw new WrongUsage(
      'the export contains a private key, which would stay on the terminal; use --output FILE, --qr or a pipe',
    );
  }
  const handOver = ([{ text }]: ExportedFiles) => {
    warnReadable('the private key');
    return printAll(text.trimEnd());
  };
  return { check: () => {}, handOver, cancel: async () => {} };
}

async function screen(): Promise<Recipient> {
  const { drawCode } = await import('./terminal/qr-code.ts');
  const columns = process.stdout.isTTY ? columnsOf(process.stdout) : Number.POSITIVE_INFINITY;
  return {
    check: ([{ text }]) => void drawCode(text, columns),
    handOver: ([{ text }]) => printAll(drawCode(text, columns)),
    cancel: async () => {},
  };
}

async function filesAt(path: string, format: Format): Promise<Recipient> {
  const made: SecretFile[] = [];
  const cancel = async () => {
    for (const file of made) await file.discard();
  };
  try {
    for (const each of format === 'networkd' ? networkdPaths(path) : [path])
      made.push(await makeSecretFile(each, '--output'));
  } catch (error) {
    await cancel();
    throw error;
  }
  return {
    check: () => {},
    async handOver(files) {
      try {
        for (const [at, file] of made.entries()) await file.write(files[at]?.text ?? '');
      } catch (error) {
        await cancel();
        throw error;
      }
      note(`wrote ${made.map((file) => file.path).join(' and ')}`);
    },
    cancel,
  };
}

/** The two files of systemd-networkd, which recognizes both by their suffixes. */
function networkdPaths(path: string): string[] {
  if (!path.endsWith('.netdev'))
    throw new WrongUsage(`--output ${path} does not end in .netdev, which systemd-networkd requires`);
  return [path, `${path.slice(0, -'.netdev'.length)}.network`];
}
