import { expect, test } from 'vitest';
import { type AuditList, addNewer, addOlder, readNewer, readOlder } from '../../src/console/logic/events/audit-list.ts';
import type { AuditEntry } from '../../src/contract/audit.ts';

/** A control plane with an audit, and a page that shows it. */
class Page {
  list: AuditList = { entries: [], isComplete: false };
  ids: number[] = [];

  add(count: number): void {
    const last = this.ids.at(-1) ?? 0;
    this.ids.push(...Array.from({ length: count }, (_, at) => last + at + 1));
  }

  read = async (limit: number, before = Number.POSITIVE_INFINITY): Promise<readonly AuditEntry[]> =>
    this.ids
      .filter((id) => id < before)
      .toReversed()
      .slice(0, limit)
      .map((id) => ({
        ...{ id, at: '2030-01-01T00:00:00.000Z', action: 'peer.enroll', address: null, details: {} },
        actor: { kind: 'user', id: 1, name: 'me@example.net' },
        target: { kind: 'peer', id: 7, name: 'web-1' },
      }));

  async update(): Promise<void> {
    this.list = addNewer(this.list, await readNewer(this.list, this.read));
  }

  async older(): Promise<void> {
    this.list = addOlder(this.list, this.list, await readOlder(this.list, this.read));
  }

  get shown(): readonly number[] {
    return this.list.entries.map(({ id }) => id);
  }
}

const newest = (page: Page, count: number) => page.ids.toReversed().slice(0, count);

test.each([1, 19, 20, 21, 199, 200, 201, 260])(
  '%i entries that came while the page was away leave no gap',
  async (count) => {
    const page = new Page();
    page.add(450);
    await page.update();
    await page.older();
    expect(page.shown).toEqual(newest(page, 400));
    page.add(count);
    await page.update();
    expect(page.shown).toEqual(newest(page, page.shown.length));
    expect(page.shown.length).toBe(count < 200 ? 400 + count : 200);
    for (let round = 0; !page.list.isComplete; round += 1) {
      expect(round).toBeLessThan(5);
      await page.older();
    }
    expect(page.shown).toEqual(newest(page, 450 + count));
  },
);

test('an audit that is empty, grows, and is restored from a backup is shown as it is', async () => {
  const page = new Page();
  await page.update();
  expect(page.list).toEqual({ entries: [], isComplete: true });
  page.add(3);
  await page.update();
  const before = page.list;
  expect([page.shown, before.isComplete]).toEqual([[3, 2, 1], true]);
  await page.update();
  expect(page.list).toBe(before);
  page.ids = [1, 2];
  await page.update();
  expect(page.shown).toEqual([2, 1]);
});

test('older entries that were read for a list that began again meanwhile are left out', async () => {
  const page = new Page();
  page.add(450);
  await page.update();
  const asked = page.list;
  const came = await readOlder(asked, page.read);
  page.add(260);
  await page.update();
  expect(addOlder(page.list, asked, came)).toBe(page.list);
  await page.older();
  expect(page.shown).toEqual(newest(page, 400));
});
