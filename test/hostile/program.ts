import { join } from 'node:path';
import type { Host } from '../lab/host.ts';

/** How a command ended, and all it said. */
export interface Said {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** The most memory that it held at once, in KiB. */
  readonly peakKiB: number;
}

/** A way to run commands on a host. */
export interface Program {
  run(args: readonly string[]): Promise<Said>;
}

/** The address of whoever is logged in: neither way to run a command has a session of its own. */
export const sshClient = '198.51.101.5';
const env = { SSH_CONNECTION: `${sshClient} 50000 203.0.113.20 22` };

/** The commands of the source, all in one process, because starting Node for each would take most of the time. */
export function driveProgram(host: Host): Program {
  const driver = host.spawn(['node', join(import.meta.dirname, 'driver.ts')], { holdInput: true, env });
  return {
    async run(args) {
      driver.writeInput(`${JSON.stringify(args)}\n`);
      const [, answer = ''] = await driver.waitForLine(/^answer (.*)$/, 60_000);
      return JSON.parse(answer);
    },
  };
}

/** Writes the peak of a process's memory as its last words. */
const lastWords = 'process.on("exit",()=>process.stderr.write("peak "+process.resourceUsage().maxRSS))';

/** The built program, a process for each command. */
export function builtProgramOf(host: Host): Program {
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(lastWords)}`;
  return {
    async run(args) {
      const options = { env: { ...env, NODE_OPTIONS }, allowFailure: true };
      const { exitCode, stdout, stderr: all } = await host.cpn(args, options);
      const [, stderr = all, peakKiB] = /^(.*)peak (\d+)$/s.exec(all) ?? [];
      return { exitCode, stdout, stderr, peakKiB: Number(peakKiB) };
    },
  };
}
