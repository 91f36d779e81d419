/**
 * Runs the commands of the built program in one process, one after the other: a command costs its own work, and not the start of Node.
 * A line of JSON on standard input is a command (`{args, env, input}`), and the answer (`{exitCode, stdout, stderr, peakKiB}`) is a
 * line on standard output. The peak is that of the process's memory during the command.
 */
const { readFileSync, writeFileSync, writeSync } = require('node:fs');
const { createInterface } = require('node:readline');
const { Readable } = require('node:stream');
// With the code that V8 made of it at the build: V8 takes it with this process's flags too, which the loader does not expect.
process.execArgv.length = 0;
const { runProgram } = require('../../dist/load.cjs').load('./main.cjs');

const output = { stdout: '', stderr: '' };
for (const name of ['stdout', 'stderr']) {
  process[name].write = (text, ...rest) => {
    output[name] += text;
    const done = rest.at(-1);
    if (typeof done === 'function') process.nextTick(done);
    return true;
  };
}

void serve();

async function serve() {
  const requests = createInterface({ input: process.stdin });
  for await (const line of requests) {
    const { args, env, input } = JSON.parse(line);
    Object.assign(output, { stdout: '', stderr: '' });
    Object.defineProperty(process, 'stdin', {
      value: Readable.from(input === '' ? [] : [Buffer.from(input)]),
      configurable: true,
    });
    // The peak starts over: proc_pid_clear_refs(5).
    writeFileSync('/proc/self/clear_refs', '5');
    const exitCode = await runProgram(args, { ...process.env, ...env });
    const [, peakKiB] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
    answer({ ...output, exitCode, peakKiB: Number(peakKiB) });
  }
  process.exit();
}

/** A pipe that is full takes a part. */
function answer(reply) {
  const bytes = Buffer.from(`answer ${JSON.stringify(reply)}\n`);
  for (let sent = 0; sent < bytes.length; ) {
    try {
      sent += writeSync(1, bytes, sent);
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
    }
  }
}
