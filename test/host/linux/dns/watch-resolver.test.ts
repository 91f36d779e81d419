import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import type { HostEvent } from '../../../../src/host/host.ts';
import { watchResolver } from '../../../../src/host/linux/dns/watch-resolver.ts';
import { eventually } from '../../../lab/eventually.ts';

it('reports changes in a folder that is there later, or is replaced, and in another one', async () => {
  const root = await mkdtemp(join(tmpdir(), 'cpn-watch-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  let path = join(root, 'one');
  const events: HostEvent[] = [];
  const watch = watchResolver(
    (event) => void events.push(event),
    () => path,
  );
  onTestFinished(() => watch.close());
  const reports = (what: string) =>
    eventually(what, async () => {
      const before = events.length;
      await writeFile(join(path, 'file'), '');
      await sleep(20);
      return events.length > before;
    });
  await mkdir(path);
  await reports('a change in the folder');
  await rm(path, { recursive: true });
  await mkdir(path);
  await reports('a change in the folder that replaces it');
  path = join(root, 'other');
  await mkdir(path);
  await reports('a change in the other folder');
  expect(new Set(events.map(({ kind }) => kind))).toEqual(new Set(['dns']));
});
