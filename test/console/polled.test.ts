import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type ConsoleClient, loadModule, stubBrowser } from './browser-globals.ts';
import { holdRequests, type PageRequest, pass, showHook, stubDocument, stubWindows } from './page.ts';

interface Polling {
  usePolled(path: string, version?: unknown): { items: unknown; problem: string | null; refresh(): Promise<void> };
}
interface Reading {
  useSettled(value: string): string;
  useReading(path: string, version: unknown): { data: unknown; isRead: boolean; problem: string | null };
}

let browser: ReturnType<typeof stubBrowser>;
let page: ReturnType<typeof stubDocument>;
let client: ConsoleClient;
let requests: PageRequest[];
let usePolled: Polling['usePolled'];
let useReading: Reading['useReading'];
let useSettled: Reading['useSettled'];
beforeEach(async () => {
  vi.resetModules();
  browser = stubBrowser();
  stubWindows();
  page = stubDocument();
  requests = holdRequests();
  client = await loadModule<ConsoleClient>('client');
  ({ usePolled } = await loadModule<Polling>('polled'));
  ({ useReading, useSettled } = await loadModule<Reading>('read'));
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
  browser.close();
});

describe('a polled list', () => {
  const open = async (path = 'api/users', version: unknown = null) => {
    const list = showHook(([at, of]: readonly [string, unknown]) => usePolled(at, of));
    await list.show([path, version]);
    return list;
  };

  test('is read at once and every ten seconds, until its component is removed', async () => {
    const list = await open();
    expect([list.last.items, list.last.problem, requests.length]).toEqual([null, null, 1]);
    await requests[0]?.answer(200, [1]);
    expect(list.last.items).toEqual([1]);
    await pass(10_000);
    await requests[1]?.answer(200, [1, 2]);
    expect(list.last.items).toEqual([1, 2]);
    await list.remove();
    await pass(60_000);
    expect([requests.length, vi.getTimerCount()]).toEqual([2, 0]);
  });

  test('is not read while the page is hidden, nor while a slow reply is pending', async () => {
    const list = await open();
    await pass(30_000);
    expect(requests).toHaveLength(1);
    await requests[0]?.answer(200, [1]);
    await page.setHidden(true);
    await pass(30_000);
    expect(requests).toHaveLength(1);
    await page.setHidden(false);
    await pass(10_000);
    expect(requests).toHaveLength(2);
    await list.remove();
  });

  test('is that of the latest request, whichever reply or failure comes last', async () => {
    const list = await open();
    void list.last.refresh();
    void list.last.refresh();
    await pass(0);
    await requests[2]?.answer(200, ['latest']);
    await requests[0]?.answer(200, ['first']);
    await requests[1]?.answer(500);
    expect([list.last.items, list.last.problem]).toEqual([['latest'], null]);
    await list.remove();
  });

  test('is not read again while a refresh is pending, although an earlier request has ended', async () => {
    const list = await open();
    void list.last.refresh();
    await pass(0);
    await requests[0]?.answer(200, ['first']);
    await pass(10_000);
    expect(requests).toHaveLength(2);
    await list.remove();
  });

  test('keeps its entries with a problem, which the next reply ends', async () => {
    const list = await open();
    await requests[0]?.answer(200, [1]);
    await pass(10_000);
    await requests[1]?.answer(403);
    expect([list.last.items, list.last.problem, client.isOutOfReach.value]).toEqual([
      [1],
      'The control plane answered with the status 403.',
      false,
    ]);
    await pass(10_000);
    await requests[2]?.answer(200, [2]);
    expect([list.last.items, list.last.problem]).toEqual([[2], null]);
    await list.remove();
  });

  test('has no problem of its own during an outage, which is one of the whole console', async () => {
    const list = await open();
    await requests[0]?.drop();
    expect([list.last.problem, client.isOutOfReach.value]).toEqual([null, true]);
    await list.remove();
  });

  test('of a component that was removed says nothing of an outage any more', async () => {
    const list = await open();
    await list.remove();
    await requests[0]?.drop();
    expect(client.isOutOfReach.value).toBe(false);
  });

  test('is read again with another version, and with another path', async () => {
    const list = await open('api/keys', 1);
    await requests[0]?.answer(200, [1]);
    await list.show(['api/keys', 2]);
    await requests[1]?.answer(200, [2]);
    await list.show(['api/other', 2]);
    expect(requests.map(({ path }) => path)).toEqual(['api/keys', 'api/keys', 'api/other']);
    await list.remove();
  });
});

describe('a reading', () => {
  const open = async (path = 'api/traffic', version: unknown = 1) => {
    const reading = showHook(([at, of]: readonly [string, unknown]) => useReading(at, of));
    await reading.show([path, version]);
    return reading;
  };

  test('is unread, then read, and read again with another version or path', async () => {
    const reading = await open();
    expect(reading.last).toEqual({ data: null, isRead: false, problem: null });
    await requests[0]?.answer(200, 'one');
    expect(reading.last).toEqual({ data: 'one', isRead: true, problem: null });
    await reading.show(['api/traffic', 1]);
    expect(requests).toHaveLength(1);
    await reading.show(['api/traffic', 2]);
    await requests[1]?.answer(200, 'two');
    expect(reading.last.data).toBe('two');
    await reading.show(['api/other', 2]);
    expect(requests).toHaveLength(3);
    await reading.remove();
  });

  test('of an earlier version is ignored, be it a reply or a failure', async () => {
    const reading = await open();
    await reading.show(['api/traffic', 2]);
    await reading.show(['api/traffic', 3]);
    await requests[2]?.answer(200, 'three');
    await requests[0]?.answer(200, 'one');
    await requests[1]?.answer(500);
    expect(reading.last).toEqual({ data: 'three', isRead: true, problem: null });
    await reading.remove();
  });

  test('keeps what it read with a problem, and has none of a control plane without it', async () => {
    const reading = await open();
    await requests[0]?.answer(200, 'one');
    await reading.show(['api/traffic', 2]);
    await requests[1]?.answer(500);
    const problem = 'The control plane answered with the status 500.';
    expect(reading.last).toEqual({ data: 'one', isRead: true, problem });
    await reading.show(['api/traffic', 3]);
    await requests[2]?.answer(404);
    expect(reading.last).toEqual({ data: null, isRead: true, problem: null });
    await reading.remove();
  });
});

test('a value that is typed settles once, after the last key', async () => {
  const typed = showHook((text: string) => useSettled(text));
  await typed.show('4');
  await typed.show('44');
  await pass(200);
  await typed.show('443');
  await pass(200);
  expect(typed.last).toBe('4');
  await pass(100);
  expect([typed.last, typed.shown.includes('44')]).toEqual(['443', false]);
  await typed.remove();
});
