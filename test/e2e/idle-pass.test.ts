import { readFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { builtProgram } from '../lab/built-program.ts';
import { makeKey } from '../lab/control-plane.ts';
import { eventually } from '../lab/eventually.ts';
import { readExecs, traceExecs } from '../lab/exec-trace.ts';
import { join, type Office, patiently, startOffice, status } from './office.ts';

let office: Office;

beforeAll(async () => {
  office = await startOffice();
}, 60_000);

afterAll(() => office?.lab.stop());

/** Everything by which a program changes files or starts others, and opens that may. */
const traced =
  'execve,open,openat,creat,truncate,ftruncate,rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,link,linkat,symlink,symlinkat,chmod,fchmod,fchmodat,utimensat,fsync,fdatasync';

/** A call that may write to a file with a name; what a tool reads on its standard input is a file without one. */
const writes = /^(?!.*(O_TMPFILE|"\/dev\/null")).*\b(O_WRONLY|O_RDWR|O_CREAT|O_TRUNC)\b/;

it('the join of a first peer observes the host once before its changes and once after them', async () => {
  const first = await office.lab.addHost('first', { address: '203.0.113.13/24' });
  const trace = path(first.folder, 'join-trace');
  const join = [
    await builtProgram(),
    'join',
    '-',
    ...office.api,
    '--name',
    'first',
    '--endpoint',
    '203.0.113.13:51820',
  ];
  const input = await makeKey(office.controlPlane, 'office', 'first');
  await first.exec(traceExecs(trace, join), { input, timeoutMs: 60_000 });
  const looks = (await readExecs(trace))
    .map(({ argv }) => argv.join(' '))
    .filter((each) => /wg show|ip -force -json/.test(each))
    .map((each) => each.slice(each.lastIndexOf('/') + 1));
  expect(looks.sort()).toEqual([
    ...['ip -force -json -details -Numeric -batch -', 'ip -force -json -details -Numeric -batch -'],
    ...['wg show cpn0 dump', 'wg show cpn0 dump'],
  ]);
  await first.cpn(['leave', '--yes']);
});

it('a pass with nothing to do starts the observers and nothing else, and writes nothing', async () => {
  const connector = await office.lab.addHost('connector', { address: '203.0.113.11/24' });
  const origin = await office.lab.addHost('origin', { address: '203.0.113.12/24' });
  await join(office, connector, '--type', 'connector', '--endpoint', '203.0.113.11:51820');
  const { address } = await join(office, origin, '--endpoint', '203.0.113.12:51820');
  const trace = path(connector.folder, 'trace');
  const daemon = connector.spawn([
    ...['strace', '-f', '-qq', '-e', `trace=${traced}`, '-o', trace, '-s', '200'],
    ...[await builtProgram(), 'run', '--interval', '1'],
  ]);
  try {
    await daemon.waitForLine(/reconciling the network/, 60_000);
    await eventually('the other is reached', async () => (await connector.ping(address, patiently)).received > 0, {
      timeoutMs: 60_000,
    });
    // Once for each session: whether packets of the full size pass.
    await eventually('the path is measured', async () =>
      (await readLines(trace)).some((line) => /execve\("[^"]*\/ping"/.test(line)),
    );
    await eventually('the daemon waits', async () => (await status(connector)).sync.mode === 'push');
    // The pass after the one of the last event, and some more of them. On a busy machine the measurement goes on, and another shell begins
    // to stand by for the daemon's tools.
    const isBeginning = (line: string) => /execve\("[^"]*\/(?:ping|sh)"/.test(line);
    const passes = (lines: readonly string[]) => lines.filter((line) => /execve\(.*"-batch"/.test(line)).length;
    const quiet = (await readLines(trace)).length;
    const lines = await eventually('five passes', async () => {
      const all = await readLines(trace);
      const since = all.slice(Math.max(quiet, all.findLastIndex(isBeginning) + 1));
      return passes(since) >= 5 ? since : null;
    });

    const started = new Set(
      lines.flatMap((line) => /execve\("[^"]*\/([^"/]+)", \["[^"]*"(?:, )?(.*)\]/.exec(line)?.slice(1).join(' ') ?? []),
    );
    // Between the passes WireGuard's own table is polled, for want of events.
    expect([...started].filter((each) => each !== 'wg "show", "all", "dump"').sort()).toEqual([
      'ip "-force", "-json", "-details", "-Numeric", "-batch", "-"',
      // On a connector, once an interval: other tables that drop what it forwards.
      'nft "--json", "--terse", "list", "ruleset"',
      'nft "--json", "list", "table", "inet", "cpn_cpn0"',
      'wg "show", "cpn0", "dump"',
    ]);
    // What is truncated must have been opened.
    const changes = lines.filter(
      (line) => /^\d+ +(?!execve|open|openat|ftruncate)\w+\(/.test(line) && !/= -1 /.test(line),
    );
    expect(changes).toEqual([]);
    // What a tool prints goes into files without a name, which no disk ever sees.
    expect(lines.filter((line) => writes.test(line) && !/"\/proc\/self\/fd\/\d"/.test(line))).toEqual([]);
  } finally {
    await daemon.stop();
  }
});

async function readLines(file: string): Promise<string[]> {
  const text = await readFile(file, 'utf8');
  return text.split('\n').slice(0, -1);
}
