import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { memory } from '../../lab/memory.ts';

/** The built program, for Node. */
export const program = new URL('../../../dist/start.cjs', import.meta.url).pathname;

export const owner = { email: 'owner@example.net', password: 'correct horse battery staple' };

/** `cpn control-plane serve` in a process of its own, which ends with the test. */
export interface Served {
  readonly url: string;
  readonly child: ChildProcess;
  /** What it wrote to stderr until now. */
  readonly said: () => string;
  /** Waits until it said so. */
  says(text: string | RegExp): Promise<string>;
  /** Waits for its end, and gives the exit code or the signal. */
  ended(): Promise<number | string>;
}

/** A folder that is gone with the test. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(memory, 'cpn-served-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Serves from a folder with these flags too, for its usual owner on any free port of 127.0.0.1 unless they say otherwise. */
export async function startServing(folder: string, ...flags: string[]): Promise<Served> {
  return startServingBy(program, folder, ...flags);
}

/** As {@link startServing}, by another version of the program. */
export async function startServingBy(by: string, folder: string, ...flags: string[]): Promise<Served> {
  const served = start(folder, flags, by);
  const line = await served.says(/control plane listening on (\S+)/);
  return { ...served, url: /listening on (\S+)/.exec(line)?.[1] ?? '' };
}

/** Serves in vain: gives the exit code, and what was said. */
export async function failServing(
  folder: string,
  ...flags: string[]
): Promise<{ code: number | string; said: string }> {
  const served = start(folder, flags);
  return { code: await served.ended(), said: served.said() };
}

function start(folder: string, flags: readonly string[], by = program): Omit<Served, 'url'> {
  const password = join(folder, 'password');
  writeFileSync(password, owner.password, { mode: 0o600 });
  const isElsewhere = ['--data', '--database'].some((flag) => flags.includes(flag)) || process.env.CPN_DATABASE;
  const usual = [
    ...(isElsewhere ? [] : ['--data', join(folder, 'data')]),
    ...(flags.includes('--listen') ? [] : ['--listen', '127.0.0.1:0']),
    ...(flags.includes('--owner-email') ? [] : ['--owner-email', owner.email]),
  ];
  const argv = [by, 'control-plane', 'serve', ...usual, '--owner-password-file', password, ...flags];
  const child = spawn(process.execPath, argv, { stdio: ['ignore', 'ignore', 'pipe'] });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    said += text;
  });
  const closed = once(child, 'close');
  return {
    child,
    said: () => said,
    says: async (text) => {
      const failed = closed.then(() => Promise.reject(new Error(`it ended without ${text}:\n${said}`)));
      failed.catch(() => {});
      for (;;) {
        const line = said
          .split('\n')
          .slice(0, -1)
          .find((each) => each.match(text));
        if (line !== undefined) return line;
        await Promise.race([once(child.stderr, 'data'), failed]);
      }
    },
    ended: async () => {
      await closed;
      return child.signalCode ?? child.exitCode ?? -1;
    },
  };
}

/** Runs a command of the program, and gives how it ended. */
export async function runProgram(argv: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  const child = spawn(process.execPath, [program, ...argv], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...environment },
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    stderr += text;
  });
  await once(child, 'close');
  return { code: child.exitCode, stdout, stderr };
}
