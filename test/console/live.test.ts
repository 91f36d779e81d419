import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type ConsoleClient, loadModule, stubBrowser } from './browser-globals.ts';
import { holdRequests, type PageRequest, pass, showHook, stubDocument, stubWindows } from './page.ts';
import { event, network, peer } from './samples.ts';

interface Source {
  readonly path: string;
}
interface Following {
  useLive(source: Source): { data: unknown; problem: string | null };
  networkSource(id: number): Source;
  healthSource(id: number): Source;
  eventSource(id: number): Source;
}

let browser: ReturnType<typeof stubBrowser>;
let windows: ReturnType<typeof stubWindows>;
let page: ReturnType<typeof stubDocument>;
let client: ConsoleClient;
let live: Following;
let requests: PageRequest[];
const removed: (() => Promise<void>)[] = [];
beforeEach(async () => {
  vi.resetModules();
  browser = stubBrowser();
  windows = stubWindows();
  page = stubDocument();
  requests = holdRequests();
  client = await loadModule<ConsoleClient>('client');
  live = await loadModule<Following>('live');
  vi.useFakeTimers();
});
afterEach(async () => {
  for (const remove of removed.splice(0)) await remove();
  await pass(1000);
  vi.useRealTimers();
  browser.close();
});

/** A component that shows a resource. */
async function open(source: Source) {
  const component = showHook((shown: Source) => live.useLive(shown));
  removed.push(component.remove);
  await component.show(source);
  return component;
}

const last = () => requests.at(-1) as PageRequest;
/** The reply to a request for changes where there are none. */
const unchanged = (headers = {}) => last().answer(304, null, { etag: '"1"', ...headers });
const waited = { 'preference-applied': 'wait=45' };
const office = network([peer(1)]);
const health = { peers: [], routes: [] };

/** The health of a network, read once. */
async function openHealth() {
  const component = await open(live.healthSource(1));
  await last().answer(200, health, { etag: '"1"' });
  return component;
}

describe('a resource', () => {
  test('is read at once and whole, and then waited for under its ETag', async () => {
    const shown = await open(live.networkSource(1));
    expect([shown.last, last().path]).toEqual([{ data: null, problem: null }, 'api/networks/1']);
    expect(last().headers).toEqual({ accept: 'application/json' });
    await last().answer(200, office, { etag: '"1"' });
    expect(shown.last).toEqual({ data: office, problem: null });
    expect(requests).toHaveLength(2);
    expect(last().headers).toMatchObject({ 'a-im': 'cpn-delta', 'if-none-match': '"1"', prefer: 'wait=45' });
  });

  test('that changes is shown and announced to other windows, and one that does not is neither', async () => {
    const other = windows.open('cpn changes /vpn/');
    const shown = await openHealth();
    await unchanged(waited);
    expect([shown.shown.length, other.heard, requests.length]).toEqual([2, [], 3]);
    const later = { ...health, routes: [1] };
    await last().answer(200, later, { ...waited, etag: '"2"' });
    expect([shown.last.data, other.heard]).toEqual([later, ['api/networks/1/health']]);
    expect(last().headers['if-none-match']).toBe('"2"');
  });

  test('whose wait is ended early is asked for again after a second', async () => {
    await openHealth();
    await unchanged();
    expect(requests).toHaveLength(2);
    await pass(1000);
    expect([requests.length, last().headers.prefer]).toEqual([3, 'wait=45']);
  });

  test('that another window waits for is read when that one announces it, or after five seconds', async () => {
    windows.held.add('cpn wait /vpn/api/networks/1/health');
    const other = windows.open('cpn changes /vpn/');
    const shown = await openHealth();
    await unchanged();
    await pass(4999);
    expect(requests).toHaveLength(2);
    await pass(1);
    expect(last().headers).not.toHaveProperty('prefer');
    await unchanged();
    other.say('api/networks/2/health');
    await pass(0);
    expect(requests).toHaveLength(3);
    other.say('api/networks/1/health');
    await pass(0);
    expect(requests).toHaveLength(4);
    await last().answer(200, { ...health, routes: [1] }, { etag: '"2"' });
    expect([shown.last.data, other.heard]).toEqual([{ ...health, routes: [1] }, []]);
  });

  test('is waited for by one window at a time, which releases it after each reply and each failure', async () => {
    await openHealth();
    expect([...windows.held]).toEqual(['cpn wait /vpn/api/networks/1/health', 'cpn wait 0']);
    await unchanged();
    expect([...windows.held]).toEqual([]);
    await pass(1000);
    expect(windows.held.size).toBe(2);
    await last().answer(500);
    expect([...windows.held]).toEqual([]);
  });

  test('that cannot be read has a problem, and is read again at growing intervals until it can', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(1);
    const shown = await openHealth();
    await last().answer(500);
    const problem = 'The control plane answered with the status 500.';
    expect([shown.last, requests.length]).toEqual([{ data: health, problem }, 2]);
    for (const [count, ms] of [1000, 2000, 4000].entries()) {
      await pass(ms - 1);
      expect(requests).toHaveLength(count + 2);
      await pass(1);
      expect(requests).toHaveLength(count + 3);
      expect(last().headers).not.toHaveProperty('prefer');
      if (ms < 4000) await last().answer(500);
    }
    await unchanged();
    expect(shown.last).toEqual({ data: health, problem: null });
    await pass(5000);
    expect(last().headers.prefer).toBe('wait=45');
    await last().answer(500);
    await pass(1000);
    expect(requests).toHaveLength(7);
  });

  test.each([
    [1, 10_000],
    [0, 5000],
  ])('that cannot be read waits no longer than ten seconds: with the jitter %d, %d ms', async (jitter, longest) => {
    vi.spyOn(Math, 'random').mockReturnValue(jitter);
    await openHealth();
    for (const ms of [1000, 2000, 4000, 8000, 10_000]) {
      await last().answer(500);
      await pass(ms);
    }
    const { length } = requests;
    await last().answer(500);
    await pass(longest - 1);
    expect(requests).toHaveLength(length);
    await pass(1);
    expect(requests).toHaveLength(length + 1);
  });

  test.each([401, 403, 404])('that is refused with %i is read no more', async (status) => {
    const shown = await openHealth();
    await last().answer(status);
    // After a 401, the login takes the place of the page.
    expect(shown.last.problem ?? '').toContain(status === 401 ? '' : String(status));
    await pass(60_000);
    expect(requests).toHaveLength(2);
  });

  test.each([400, 429])('that is refused with %i is read again', async (status) => {
    await openHealth();
    await last().answer(status);
    await pass(1000);
    expect(requests).toHaveLength(3);
  });

  test('has no problem of its own during an outage, which is one of the whole console', async () => {
    const shown = await open(live.healthSource(1));
    await last().drop();
    expect([shown.last, client.isOutOfReach.value]).toEqual([{ data: null, problem: null }, true]);
  });

  test.each([408, 502, 503, 504, 0])(
    'is read at once where %i may be a gateway that ended the wait',
    async (status) => {
      const shown = await openHealth();
      await (status === 0 ? last().drop() : last().answer(status));
      expect([shown.last.problem, client.isOutOfReach.value, requests.length]).toEqual([null, false, 3]);
      expect(last().headers).not.toHaveProperty('prefer');
      await unchanged();
      await pass(999);
      expect(requests).toHaveLength(3);
      await pass(1);
      expect(last().headers.prefer).toBe(status === 408 || status === 504 ? 'wait=22' : 'wait=45');
      await unchanged(waited);
      expect(last().headers).toHaveProperty('prefer');
    },
  );

  test('is unreachable where the request after a gateway failure fails too', async () => {
    await openHealth();
    await last().answer(502);
    await last().answer(502);
    expect(client.isOutOfReach.value).toBe(true);
    await pass(1000);
    expect(requests).toHaveLength(4);
  });

  test('is waited for ever shorter where a gateway ends the waits, but not below five seconds', async () => {
    await openHealth();
    const waits = [];
    for (let count = 0; count < 5; count += 1) {
      waits.push(last().headers.prefer);
      await last().answer(504);
      await unchanged();
      await pass(1000);
    }
    expect(waits).toEqual(['wait=45', 'wait=22', 'wait=11', 'wait=5', 'wait=5']);
  });

  test('whose changes do not apply is read whole after a second', async () => {
    const shown = await open(live.networkSource(1));
    await last().answer(200, office, { etag: '"1"' });
    await last().answer(226, { ...office, base: '"0"', removed: [] }, { etag: '"3"' });
    expect([shown.last.data, requests.length]).toEqual([office, 2]);
    await pass(1000);
    expect(last().headers).toEqual({ accept: 'application/json' });
  });

  test('whose reply is cut off has a problem, and none where the reply ended a wait', async () => {
    const shown = await open(live.healthSource(1));
    await last().reply(new Response('{"data":'));
    expect(shown.last.problem).toMatch(/JSON/);
    await pass(1000);
    await last().answer(200, health, { etag: '"1"' });
    await pass(5000);
    await last().reply(new Response('{"data":', { headers: waited }));
    expect([shown.last, requests.length]).toEqual([{ data: health, problem: null }, 4]);
  });
});

describe('the last events', () => {
  test('are those that are known and those after them, which are waited for', async () => {
    const events = [event(7, 'peer.online'), event(8, 'peer.offline')];
    const shown = await open(live.eventSource(1));
    expect([last().path, last().headers.prefer]).toEqual(['api/networks/1/events?limit=1000', undefined]);
    await last().answer(200, events.slice(0, 1));
    expect([last().path, last().headers.prefer]).toEqual(['api/networks/1/events?limit=1000&after=7', 'wait=45']);
    await last().answer(200, events.slice(1), waited);
    expect(shown.last.data).toEqual(events);
    expect(last().path).toBe('api/networks/1/events?limit=1000&after=8');
    await last().answer(200, []);
    expect(requests).toHaveLength(3);
    await pass(1000);
    expect(requests).toHaveLength(4);
  });

  test('of a network without any are waited for too', async () => {
    await open(live.eventSource(1));
    await last().answer(200, []);
    expect([last().path, last().headers.prefer]).toEqual(['api/networks/1/events?limit=1000&after=0', 'wait=45']);
  });
});

describe('a hidden page', () => {
  test('ends its request, sends none, and goes on with the ETag once it is shown', async () => {
    const shown = await openHealth();
    await page.setHidden(true);
    expect([last().signal?.aborted, shown.last.problem, windows.held.size]).toEqual([true, null, 0]);
    await pass(60_000);
    expect(requests).toHaveLength(2);
    await page.setHidden(false);
    expect(requests).toHaveLength(3);
    expect(last().headers).toMatchObject({ 'if-none-match': '"1"', prefer: 'wait=45' });
  });

  test('keeps no listener for a request that was answered', async () => {
    await openHealth();
    const listeners = page.listeners.size;
    for (let count = 0; count < 5; count += 1) await unchanged(waited);
    expect(page.listeners.size).toBe(listeners);
  });

  test('that is left does not wait to be shown', async () => {
    const shown = await openHealth();
    await page.setHidden(true);
    await shown.remove();
    await pass(1000);
    expect(page.listeners.size).toBe(0);
    await page.setHidden(false);
    expect(requests).toHaveLength(2);
  });
});

describe('components of one resource', () => {
  test('share its requests, which end a second after the last of them', async () => {
    const first = await openHealth();
    const second = await open(live.healthSource(1));
    expect([second.last.data, requests.length]).toEqual([health, 2]);
    await first.remove();
    await pass(5000);
    expect(last().signal?.aborted).toBe(false);
    await second.remove();
    await pass(999);
    expect(last().signal?.aborted).toBe(false);
    await pass(1);
    expect(last().signal?.aborted).toBe(true);
    await open(live.healthSource(1));
    expect(last().headers).not.toHaveProperty('if-none-match');
  });

  test('on two pages in a row read it once', async () => {
    const first = await openHealth();
    await first.remove();
    const second = await open(live.healthSource(1));
    await pass(5000);
    expect([second.last.data, requests.length, last().signal?.aborted]).toEqual([health, 2, false]);
  });

  test('follow the other resource once theirs is another', async () => {
    const shown = await openHealth();
    const [, waiting] = requests;
    await shown.show(live.healthSource(2));
    await last().answer(200, { peers: [], routes: [2] }, { etag: '"1"' });
    expect(shown.last.data).toEqual({ peers: [], routes: [2] });
    await pass(1000);
    expect([waiting?.signal?.aborted, last().signal?.aborted, last().path]).toEqual([
      ...[true, false],
      'api/networks/2/health',
    ]);
  });

  test('of an ended session wait no more, and those of the next one read it again', async () => {
    const shown = await openHealth();
    const [, waiting] = requests;
    client.sessionsEnded.value += 1;
    await pass(0);
    expect([waiting?.signal?.aborted, shown.last.problem]).toEqual([true, null]);
    const next = await open(live.healthSource(1));
    expect([next.last.data, last().headers['if-none-match']]).toEqual([null, undefined]);
    await last().answer(200, health, { etag: '"9"' });
    // The first one leaves the resource of the next one alone.
    await shown.remove();
    await pass(2000);
    const again = await open(live.healthSource(1));
    expect([again.last.data, requests.length, last().signal?.aborted]).toEqual([health, 4, false]);
  });
});
