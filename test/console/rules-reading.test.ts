import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type ConsoleClient, failureOf, loadModule, stubBrowser } from './browser-globals.ts';
import { holdRequests, type PageRequest, settle, showHook, stubDocument, stubWindows } from './page.ts';
import { network, peer } from './samples.ts';

interface Reading {
  stored: { rules: unknown; etag: string | null } | null;
  isRead: boolean;
  problem: string | null;
  refresh(): Promise<void>;
  show(stored: object): void;
}
interface RulesModule {
  useRules(network: number, version: unknown): Reading;
  useHasRules(network: number): boolean;
  useEnforcement(network: object, version: unknown): ReadonlyMap<number, string> | null;
  applyRules(network: number, body: object, etag: string | null): Promise<object>;
  previewRules(network: number, body: object): Promise<object>;
  confirmRules(network: number, etag: string | null): Promise<object>;
}

let browser: ReturnType<typeof stubBrowser>;
let client: ConsoleClient;
let rules: RulesModule;
let requests: PageRequest[];
beforeEach(async () => {
  vi.resetModules();
  browser = stubBrowser();
  stubWindows();
  stubDocument();
  requests = holdRequests();
  client = await loadModule<ConsoleClient>('client');
  rules = await loadModule<RulesModule>('rules');
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
  browser.close();
});

const last = () => requests.at(-1) as PageRequest;
const open = { mode: 'open', enforcement: [] };
const closed = { mode: 'closed', enforcement: [{ peer: { id: 1, name: 'a' }, by: 'nothing' }] };

describe('the rules of a network', () => {
  const show = async (version: unknown = 1) => {
    const shown = showHook((of: unknown) => rules.useRules(7, of));
    await shown.show(version);
    return shown;
  };

  test('are read with their ETag, and again for another version', async () => {
    const shown = await show();
    expect([shown.last.isRead, last().path]).toEqual([false, 'api/networks/7/rules']);
    await last().answer(200, open, { etag: '"r1"' });
    expect([shown.last.isRead, shown.last.stored]).toEqual([true, { rules: open, etag: '"r1"' }]);
    await shown.show(2);
    await last().answer(200, closed, { etag: '"r2"' });
    expect([shown.last.stored, requests.length]).toEqual([{ rules: closed, etag: '"r2"' }, 2]);
  });

  test('are those of a change, whatever an earlier request is answered', async () => {
    const shown = await show();
    shown.last.show({ rules: closed, etag: '"r2"' });
    await last().answer(200, open, { etag: '"r1"' });
    await settle();
    expect(shown.last.stored).toEqual({ rules: closed, etag: '"r2"' });
  });

  test('are none at an earlier control plane, and stay as they are when a request fails', async () => {
    const shown = await show();
    await last().answer(404);
    expect([shown.last.stored, shown.last.isRead, shown.last.problem]).toEqual([null, true, null]);
    await shown.show(2);
    await last().answer(200, open, { etag: '"r1"' });
    await shown.show(3);
    await last().reply(Response.json({ message: 'the role viewer may not do this' }, { status: 403 }));
    expect([shown.last.stored?.rules, shown.last.problem]).toEqual([open, 'The role viewer may not do this.']);
    await shown.show(4);
    await last().drop();
    expect([shown.last.stored?.rules, client.isOutOfReach.value]).toEqual([open, true]);
  });

  test('are replaced only where the user saw the present ones', async () => {
    const applied = rules.applyRules(7, { mode: 'closed' }, '"r1"');
    expect([last().method, last().path, last().headers['if-match']]).toEqual(['PUT', 'api/networks/7/rules', '"r1"']);
    await last().answer(200, closed, { etag: '"r2"' });
    expect(await applied).toEqual({ rules: closed, etag: '"r2"' });
    const refused = failureOf(rules.applyRules(7, { mode: 'closed' }, '"r1"'));
    await last().reply(Response.json({ message: 'the rules changed' }, { status: 412 }));
    expect((await refused).status).toBe(412);
  });

  test('are previewed and confirmed by requests of their own', async () => {
    const preview = rules.previewRules(7, { mode: 'open' });
    expect([last().method, last().path]).toEqual(['POST', 'api/networks/7/rules/preview']);
    await last().answer(200, { gained: [] });
    expect(await preview).toEqual({ gained: [] });
    const confirmed = rules.confirmRules(7, '"r2"');
    expect([last().method, last().path]).toEqual(['POST', 'api/networks/7/rules/confirm']);
    expect(last().headers['if-match']).toBe('"r2"');
    await last().answer(200, closed, { etag: '"r2"' });
    expect(await confirmed).toEqual({ rules: closed, etag: '"r2"' });
  });
});

describe('whether a control plane has rules', () => {
  test('is read once for all parts of a page, and kept', async () => {
    const [one, other] = [showHook(rules.useHasRules), showHook(rules.useHasRules)];
    await one.show(7);
    await other.show(7);
    expect([one.last, requests.length]).toEqual([false, 1]);
    await last().answer(200, open);
    await one.show(7);
    expect([one.last, requests.length]).toEqual([true, 1]);
    const later = showHook(rules.useHasRules);
    await later.show(7);
    expect([later.last, requests.length]).toEqual([true, 1]);
  });

  test('is false at an earlier one, which is read again on the next page', async () => {
    const one = showHook(rules.useHasRules);
    await one.show(7);
    await last().answer(404);
    expect(one.last).toBe(false);
    await showHook(rules.useHasRules).show(7);
    expect(requests).toHaveLength(2);
  });
});

test('enforcement is read in a closed network alone', async () => {
  const shown = showHook((of: object) => rules.useEnforcement(of, 1));
  await shown.show(network([peer(1)]));
  expect([shown.last, requests.length]).toEqual([null, 0]);
  await shown.show(network([peer(1)], { rules: { mode: 'closed', rules: [] } }));
  await last().answer(200, closed);
  expect(shown.last).toEqual(new Map([[1, 'nothing']]));
  await shown.show(network([peer(1)]));
  expect(shown.last).toBeNull();
});
