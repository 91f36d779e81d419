/**
 * Runs inside a simulated host, whose folders are in its environment: passes as a daemon makes
 * them, in one process that follows the events of the host. Writes {@link TablePasses} as JSON.
 *
 * @module
 */
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { openTools } from '../../../src/cli/context.ts';
import { Input } from '../../../src/cli/input/input.ts';
import { readChildrenTime, readMemory, runsPerFigure } from './proc.ts';

export interface TablePasses {
  /** Milliseconds of processor time of each pass, its tools included. */
  readonly passes: readonly number[];
  /** MiB after each of them. */
  readonly memory: readonly number[];
  /** Events of the host that would start a pass. */
  readonly events: number;
}

const warmUp = 5;
const rounds = 20;

const tools = await openTools(new Input({}, {}, process.env), 'daemon');
let events = 0;
const pass = () => passNetwork(tools, 'cpn0', noUpdate, { withinMs: 20_000 });
await pass();
const watch = await tools.host.watch(() => {
  events += 1;
});
const passes: number[] = [];
const memory: number[] = [];
for (let round = 0; round < warmUp + rounds; round += 1) {
  const before = spent();
  for (let run = 0; run < runsPerFigure; run += 1) await pass();
  if (round < warmUp) continue;
  passes.push((spent() - before) / runsPerFigure);
  memory.push(readMemory(process.pid).rss);
}
await watch.close();
process.stdout.write(JSON.stringify({ passes, memory, events } satisfies TablePasses));
process.exit();

/**
 * Milliseconds of processor time of this process and of the tools that it ran, or had a shell run.
 */
function spent(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000 + readChildrenTime(process.pid);
}
