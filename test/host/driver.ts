/**
 * Runs inside a machine: a LinuxHost behind lines of JSON on stdin and stdout.
 *
 * @module
 */
import { createInterface } from 'node:readline';
import { CpnError } from '../../src/core/errors.ts';
import type { Host } from '../../src/host/host.ts';
import { linuxHost } from '../../src/host/linux/linux-host.ts';
import { run } from '../../src/host/run.ts';
import { readJson, writeJson } from './json-with-secrets.ts';
import type { Reply, Request } from './machine.ts';

const spawned: string[] = [];
const host = linuxHost((tool, args, options) => {
  spawned.push([tool, ...args].join(' '));
  return run(tool, args, options);
});

for await (const line of createInterface({ input: process.stdin })) {
  const request = readJson(line) as Request;
  spawned.length = 0;
  const reply = await answer(host, request);
  process.stdout.write(`${writeJson({ ...reply, spawned })}\n`);
}
// A resolver that was given up still holds a thread.
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
