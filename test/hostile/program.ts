import { CommandServer } from '../lab/command-server.ts';
import type { Host } from '../lab/host.ts';

/** How a command ended, and its output. */
export interface CommandResult {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** The most memory that it held at once, in KiB. */
  readonly peakKiB: number;
}

/** Runs commands on a host. */
export interface Program {
  run(args: readonly string[]): Promise<CommandResult>;
}

/** The address of the logged-in user: commands run here have no session of their own. */
export const sshClient = '198.51.101.5';
const env = { SSH_CONNECTION: `${sshClient} 50000 203.0.113.20 22` };

/** The built program in one process, because starting Node for each command would take most of the time. */
export function serveProgram(host: Host): Program {
  const server = new CommandServer((argv) => host.spawn(argv, { holdInput: true, env }));
  return { run: (args) => server.run({ args, env: {}, input: '' }, `${host.name}: cpn ${args.join(' ')}`, 60_000) };
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
