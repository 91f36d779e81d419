/**
 * Runs inside a machine: a host behind lines of JSON on stdin and stdout, of the driver that CPN_HOST_DRIVER names.
 *
 * @module
 */
import { createInterface } from 'node:readline';
import { CpnError } from '../../src/core/errors/index.ts';
import type { Host } from '../../src/host/host.ts';
import { linuxHost } from '../../src/host/linux/linux-host.ts';
import { type Run, run } from '../../src/host/process/run.ts';
import { portableHost } from '../../src/host/wg-quick/portable-host.ts';
import { tunnelFiles } from '../../src/host/wg-quick/tunnel-files.ts';
import { wgQuickManager } from '../../src/host/wg-quick/tunnel-manager.ts';
import { readJson, writeJson } from './json-with-secrets.ts';
import type { Reply, Request } from './machine.ts';

const spawned: string[] = [];
const recordingRun: Run = (tool, args, options) => {
  spawned.push([tool, ...args].join(' '));
  return run(tool, args, options);
};
const platform = (process.env.PLATFORM as NodeJS.Platform | undefined) ?? process.platform;
const manager = wgQuickManager(recordingRun, platform, '/run/names');
const host =
  process.env.CPN_HOST_DRIVER === 'wg-quick'
    ? portableHost({ run: recordingRun, manager, files: tunnelFiles('/run/tunnels') })
    : linuxHost(recordingRun);

for await (const line of createInterface({ input: process.stdin })) {
  const request = readJson(line) as Request;
  spawned.length = 0;
  const reply = await answer(host, request);
  process.stdout.write(`${writeJson({ ...reply, spawned })}\n`);
}
// A resolver past its deadline still blocks a thread.
process.exit();

async function answer(host: Host, { call, args }: Request): Promise<Omit<Reply, 'spawned'>> {
  try {
    const value: unknown = await (host[call] as (...args: unknown[]) => Promise<unknown>)(...args);
    return { value: value instanceof Set ? [...value] : value };
  } catch (error) {
    if (!(error instanceof CpnError)) return { error: { name: 'not a CpnError', message: String(error), facts: {} } };
    const { name, message, facts } = error;
    return { error: { name, message, facts, ...(error.cause !== undefined && { cause: String(error.cause) }) } };
  }
}
