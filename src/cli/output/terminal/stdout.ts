import { fstatSync, writeSync } from 'node:fs';
import { DiskFailed } from '../../../core/errors/index.ts';

/** The first failure of a write. Null without one. */
let lost: DiskFailed | null = null;
/** True if a command received the failure, and throws it. */
let isThrown = false;

/** Reports failed writes on stdout to {@link findLostOutput}. Called once, before any output. */
export function watchOutput(): void {
  const { stdout, stderr } = process;
  // A lost terminal or SSH session must not end a rollback. The failure cannot be reported.
  stderr.on('error', () => {});
  if (fstatSync(1).isFile()) stdout._write = writeWhole;
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    // A closed pipe, such as of `head`, is no failure.
    if (error.code !== 'EPIPE') lost ??= failed(error);
  });
}

/** The first failure of a write that no command threw. */
export function findLostOutput(): DiskFailed | null {
  return isThrown ? null : lost;
}

/** Writes content that must not be lost, even to a closed pipe. @throws DiskFailed on failure */
export function deliver(content: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(content, (error) => {
      if (!error) return resolve();
      isThrown = true;
      reject(failed(error));
    });
  });
}

/** A full disk accepts only a part, which Node's SyncWriteStream reports as a success. */
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
