import { fstatSync, writeSync } from 'node:fs';
import { DiskFailed } from '../../../core/errors/index.ts';

/** What first kept output from being written; null while nothing did. */
let lost: DiskFailed | null = null;
/** A failure that a command itself got, and throws. */
let isThrown = false;

/** Makes output on stdout that is lost known to {@link findLostOutput}. Called once, before anything is printed. */
export function watchOutput(): void {
  const { stdout, stderr } = process;
  // A terminal that is gone, as with an SSH session, must not end what takes a change back. Nowhere is left to report it.
  stderr.on('error', () => {});
  if (fstatSync(1).isFile()) stdout._write = writeWhole;
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    // A reader that went away, such as `head`, wants no more.
    if (error.code !== 'EPIPE') lost ??= failed(error);
  });
}

/** What kept output from being written, where no command threw it. */
export function findLostOutput(): DiskFailed | null {
  return isThrown ? null : lost;
}

/** Writes to stdout what must not be lost, also where its reader went away. @throws DiskFailed where stdout does not take it */
export function deliver(content: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(content, (error) => {
      if (!error) return resolve();
      isThrown = true;
      reject(failed(error));
    });
  });
}

/** A file on a disk that gets full takes a part, which Node's own stream counts as a success (SyncWriteStream). */
function writeWhole(bytes: Uint8Array, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
  try {
    for (let written = 0; written < bytes.length; ) written += writeSync(1, bytes, written);
    done();
  } catch (error) {
    done(error as Error);
  }
}

function failed(error: NodeJS.ErrnoException): DiskFailed {
  return new DiskFailed('write', 'standard output', error);
}
