import { once } from 'node:events';
import * as cli from '../cli/commands/served-process.ts';
import { databaseFor } from './databases.ts';
import { call, type Plane } from './harness.ts';

/** The built program as a control plane in a process of its own, which ends with the test. */
export interface ServerProcess extends Pick<Plane, 'call'>, Pick<cli.Served, 'child' | 'said'> {}

/** Starts a control plane over the folder, or over the database that stands in for it, and waits until it answers. */
export async function startProcess(dataDir: string, ...flags: string[]): Promise<ServerProcess> {
  return startProcessBy(cli.program, dataDir, ...flags);
}

/** As {@link startProcess}, by another version of the program. */
export async function startProcessBy(program: string, dataDir: string, ...flags: string[]): Promise<ServerProcess> {
  const database = await databaseFor(dataDir);
  const data = database === null ? ['--data', dataDir] : ['--database', database.reveal()];
  const { url, child, said } = await cli.startServingBy(program, cli.makeFolder(), ...data, ...flags);
  return { child, said, call: (method, path, options) => call(url, method, path, options) };
}

/** Kills it with SIGKILL, and waits until it has ended. */
export async function kill({ child }: ServerProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}
