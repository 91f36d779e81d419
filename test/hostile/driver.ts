/**
 * The program without its start, which costs more than most lies: runs one command after the other in one process, each as `cpn` would,
 * with the environment that it was started with. A line of JSON on standard input is a command, and the answer to it a line on standard output.
 *
 * @module
 */
import { readFileSync, writeFileSync, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { runProgram } from '../../src/cli/program.ts';
import type { Said } from './program.ts';

const said = { stdout: '', stderr: '' };
for (const name of ['stdout', 'stderr'] as const) {
  process[name].write = (text: string | Uint8Array) => {
    said[name] += text;
    return true;
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  said.stdout = '';
  said.stderr = '';
  // The peak is counted anew from here: proc_pid_clear_refs(5).
  writeFileSync('/proc/self/clear_refs', '5');
  const exitCode = await runProgram(JSON.parse(line), process.env);
  const [, peakKiB] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  const answer: Said = { ...said, exitCode, peakKiB: Number(peakKiB) };
  print(`answer ${JSON.stringify(answer)}\n`);
}
process.exit();

/** A pipe that is full takes a part. */
function print(text: string): void {
  const bytes = Buffer.from(text);
  for (let sent = 0; sent < bytes.length; ) sent += writeSync(1, bytes, sent);
}
