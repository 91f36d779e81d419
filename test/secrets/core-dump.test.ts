/** What a crash leaves on disk. */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { builtProgram } from '../lab/built-program.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { Lab } from '../lab/lab.ts';
import type { Process } from '../lab/process.ts';
import { run } from '../lab/run.ts';
import { Canaries } from './canaries.ts';

let lab: Lab;
let host: Host;
let folder: string;
const pattern = (await readFile('/proc/sys/kernel/core_pattern', 'utf8')).trim();

beforeAll(async () => {
  lab = await Lab.start();
  host = await lab.addHost('host', { address: '203.0.113.11/24' });
  folder = join(host.folder, 'crash');
  const silent = "require('net').createServer().listen(8080, '127.0.0.1', () => console.log('listening'))";
  await host.spawn(['node', '-e', silent]).waitForLine(/listening/);
});

afterAll(() => lab?.stop());

/** A join that waits for its answer, with all its secrets in memory. */
async function startJoin(key: string): Promise<{ joining: Process; canaries: Canaries }> {
  await rm(folder, { recursive: true, force: true });
  await rm(host.stateDir, { recursive: true, force: true });
  await mkdir(folder);
  const script = 'ulimit -c unlimited; cd "$0"; exec "$@"';
  const argv = [await builtProgram(), 'join', '-', '--api', 'http://127.0.0.1:8080', '--wait', '0'];
  const joining = host.spawn(['sh', '-c', script, folder, ...argv], { input: key });
  await joining.waitForLine(/enrolling/, 20_000);
  const canaries = new Canaries();
  canaries.addText('enrolment key', key);
  const path = join(host.stateDir, 'cpn0.json');
  canaries.addState(await eventually('a state', () => readFile(path, 'utf8').catch(() => null)));
  return { joining, canaries };
}

/** Crashes it, and gives the file that the kernel wrote. */
async function crash(joining: Process): Promise<string> {
  joining.signal('SIGABRT');
  await joining.exited;
  const cores = await readdir(folder);
  expect(cores).toHaveLength(1);
  return join(folder, cores[0] ?? '');
}

/** The memory in a core file of ELF64: elf(5). The registers, in its notes, hold what was copied last, and no filter keeps them out. */
async function readMemory(path: string): Promise<Buffer> {
  const core = await readFile(path);
  const [headers, size, count] = [Number(core.readBigUInt64LE(0x20)), core.readUInt16LE(0x36), core.readUInt16LE(0x38)];
  const notes = 4;
  for (let at = headers; at < headers + size * count; at += size) {
    if (core.readUInt32LE(at) !== notes) continue;
    const [from, length] = [Number(core.readBigUInt64LE(at + 0x08)), Number(core.readBigUInt64LE(at + 0x20))];
    core.fill(0, from, from + length);
  }
  return core;
}

test('no memory of a process that holds secrets goes into a core dump', async () => {
  const { joining } = await startJoin('cpn_canary-of-the-filter');
  expect(await readFile(`/proc/${joining.pid}/coredump_filter`, 'utf8')).toBe('00000000\n');
  await joining.stop();
});

/** Elsewhere a core goes to a program of the system, which no test may catch it from. */
test.runIf(/^[^|/]+$/.test(pattern))(
  'a core dump holds none of them, where without the filter it holds them all',
  async () => {
    const guarded = await startJoin('cpn_canary-of-a-guarded-process');
    expect(guarded.canaries.find(await readMemory(await crash(guarded.joining)))).toEqual([]);
    const key = 'cpn_canary-of-an-open-process';
    const { joining } = await startJoin(key);
    const { privateKey } = JSON.parse(await readFile(join(host.stateDir, 'cpn0.json'), 'utf8'));
    // Private memory that is no file's, where the heap is.
    await writeFile(`/proc/${joining.pid}/coredump_filter`, '1');
    const core = await crash(joining);
    // Half a gigabyte, mostly of nothing: grep is the faster reader.
    for (const secret of [key, privateKey]) {
      const { exitCode } = await run(['grep', '-aqF', '-e', secret, core], { allowFailure: true });
      expect(exitCode).toBe(0);
    }
  },
);
