import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { MissingTool } from '../../../src/core/errors/index.ts';
import { eventsLost, type HostEvent } from '../../../src/host/host.ts';
import { watchEvents, watchFirewall } from '../../../src/host/linux/monitor/events.ts';
import { type Start, startFrom } from '../../../src/host/process/run.ts';
import { splitLines } from '../../../src/host/process/shell-pool.ts';

const bounded = { timeout: 20_000, interval: 10 };
const quick = { baseMs: 1, capMs: 5 };

let folder: string;
let start: Start;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cpn-start-'));
  start = startFrom([folder]);
});

afterAll(() => rm(folder, { recursive: true, force: true }));

async function install(script: string, tool = 'ip'): Promise<void> {
  await writeFile(join(folder, tool), `#!/bin/sh\n${script}\n`);
  await chmod(join(folder, tool), 0o755);
}

describe('a tool that is started', () => {
  test('gets no variable of this process, and both outputs are passed on', async () => {
    await install('tr "\\0" "\\n" </proc/$$/environ; pwd >&2; cat; for each; do echo "<$each>"; done');
    const lines: unknown[] = [];
    const child = await start('ip', ['a b', '$(id)'], (line) => lines.push(line));
    await child.ended;
    const path = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
    expect(lines.sort()).toEqual(['/', '<$(id)>', '<a b>', 'LC_ALL=C', path]);
  });

  test('is ended although it ignores SIGTERM, and passes on no line after that', async () => {
    await install("trap '' TERM PIPE; echo here; while :; do echo more; sleep 0.1; done");
    const heard = vi.fn();
    const child = await start('ip', [], heard);
    await vi.waitUntil(() => heard.mock.calls.length > 0, bounded);
    const closed = child.close();
    heard.mockClear();
    await closed;
    expect(heard).not.toHaveBeenCalled();
    expect(() => process.kill(child.pid as number, 0)).toThrow('ESRCH');
    await child.close();
  });

  test('ends without an error when it cannot be started', async () => {
    await writeFile(join(folder, 'ip'), '#!/no/such/interpreter\n');
    const child = await start('ip', [], () => {});
    await child.ended;
    await child.close();
  });
});

describe('splitLines', () => {
  test('finds the same lines however the text is split, and none that is too long', () => {
    const text = fc.array(fc.constantFrom('\n', 'a', 'bcd', 'éé'), { maxLength: 60 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(text, fc.array(fc.nat(120)), (whole, cuts) => {
        const lines: unknown[] = [];
        const read = splitLines(5, (line) => lines.push(line));
        const at = [0, ...cuts.sort((a, b) => a - b), whole.length];
        for (const [index, from] of at.entries()) read(whole.slice(from, at[index + 1] ?? from));
        const parts = whole.split('\n').map((line) => (line.length > 5 ? null : line));
        expect(lines).toEqual(parts.at(-1) === null ? parts : parts.slice(0, -1));
      }),
    );
  });
});

describe('a watch', () => {
  test('survives a tool that fails, floods and disappears', async () => {
    const events: HostEvent[] = [];
    const again = () => vi.waitUntil(() => events.splice(0).includes(eventsLost), bounded);
    await install('exit 1');
    const watch = await watchEvents((event) => events.push(event), start, { backoff: quick });
    await again();
    await install('exec tr "\\0" x </dev/zero');
    await again();
    await again();
    await rm(join(folder, 'ip'));
    await install('echo "default dev v0 "; exec sleep 1000');
    await vi.waitUntil(() => events.some(({ link }) => link === 'v0'), bounded);
    await watch.close();
  });

  test.each([
    ['ip', 'netlink receive error No buffer space available (105)', watchEvents],
    // As nft 1.0.6 printed it; its socket holds 32 MB before it does.
    ['nft', '# ERROR: We lost some netlink events!', watchFirewall],
  ] as const)('takes another %s after one that lost something', async (tool, loss, watchBy) => {
    await install(`echo "${loss}"; exec sleep 1000`, tool);
    const events: HostEvent[] = [];
    const watch = await watchBy((event) => events.push(event), start, quick);
    await vi.waitUntil(() => events.length > 1, bounded);
    await watch.close();
    expect(new Set(events)).toEqual(new Set([eventsLost]));
  });

  test('can be closed while there is no tool', async () => {
    const failing = vi.fn<Start>(async () => ({ pid: undefined, ended: Promise.resolve(), close: async () => {} }));
    const watch = await watchEvents(() => {}, failing, { backoff: quick });
    failing.mockRejectedValue(new MissingTool('ip', ''));
    await vi.waitUntil(() => failing.mock.calls.length > 3, bounded);
    await watch.close();
    const { length } = failing.mock.calls;
    await watch.close();
    expect(failing.mock.calls).toHaveLength(length);
  });
});
