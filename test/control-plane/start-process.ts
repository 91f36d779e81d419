import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';
import { databaseFor } from './databases.ts';
import { call, type Plane } from './harness.ts';

/** A control plane in a process of its own, which ends with the test. */
export interface ServerProcess extends Pick<Plane, 'call'> {
  readonly child: ChildProcess;
  /** Its URL, or the error with which it did not start. */
  readonly said: string;
  readonly log: () => string;
}

export interface ProcessOptions {
  readonly dataDir: string;
  /** The URL of the database; the one that stands in for the folder unless it is named. */
  readonly database?: string;
  readonly email?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

/** Starts a control plane, and waits until it answers or failed. */
export async function startProcess({ dataDir, email, environment, ...given }: ProcessOptions): Promise<ServerProcess> {
  const script = new URL('./server-process.ts', import.meta.url).pathname;
  const database = given.database ?? (await databaseFor(dataDir))?.reveal();
  const child = spawn(process.execPath, [script, dataDir, ...(email ? [email] : [])], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...environment, ...(database !== undefined && { CPN_TEST_DATABASE: database }) },
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  const lines: string[] = [];
  child.stderr.on('data', (chunk) => lines.push(String(chunk)));
  const [said] = await once(createInterface(child.stdout), 'line');
  return {
    child,
    said,
    log: () => lines.join(''),
    call: (method, path, options) => call(said, method, path, options),
  };
}

/** Kills it as nobody can prevent, and waits until it is gone. */
export async function kill({ child }: ServerProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}
