import { describe, expect, it } from 'vitest';
import type { AdminService, Event, EventPage } from '../../../src/api/admin-service.ts';
import { findOlderNewest, followEvents, readEvents, withPatience } from '../../../src/app/inspect/events.ts';
import { Intercepted, Refused, Unreachable } from '../../../src/core/errors/index.ts';

const event = (id: number, type = 'peer.online', at = new Date(1e12 + id * 1000).toISOString()): Event => ({
  ...{ id, at, type, network: 1, peer: null, route: null, details: {} },
});

/** A control plane with these events, as the contract describes it. */
class Plane implements Pick<AdminService, 'readEvents'> {
  events: readonly Event[] = [];
  readonly asked: EventPage[] = [];
  waits = true;
  /** Called when there is nothing to answer with, or before each answer when it is down. */
  onWait: () => void = () => {};
  isDown = false;

  async readEvents(_: unknown, page: EventPage = {}) {
    this.asked.push(page);
    if (this.isDown) {
      this.onWait();
      throw new Unreachable('http://x', 'it is down', { delivered: false, heard: false, retryAfterMs: null });
    }
    let events = this.#find(page);
    if (page.wait && events.length === 0) {
      this.onWait();
      page.wait.signal?.throwIfAborted();
      if (this.waits) events = this.#find(page);
    }
    return { events, waited: page.wait !== undefined && this.waits };
  }

  #find({ after, limit = 100 }: EventPage): Event[] {
    const isUnknown = typeof after === 'number' && after > Number(this.events.at(-1)?.id ?? after);
    if (after === undefined || isUnknown) return this.events.slice(-limit);
    return this.events.filter(({ id }) => Number(id) > Number(after)).slice(0, limit);
  }
}

const ids = (events: readonly Event[]) => events.map(({ id }) => id);

describe('reading events', () => {
  const many = Array.from({ length: 2500 }, (_, at) => event(at + 1, at % 100 === 0 ? 'route.dead' : 'peer.online'));
  const plane = Object.assign(new Plane(), { events: many });

  it('takes one request for the newest ones', async () => {
    const { asked } = plane;
    asked.length = 0;
    expect(ids(await readEvents(plane, 1, { limit: 3, types: [] }))).toEqual([2498, 2499, 2500]);
    expect(asked).toEqual([{ limit: 3 }]);
    expect(await readEvents(plane, 1, { limit: 1000, types: [] })).toHaveLength(1000);
    expect(asked).toEqual([{ limit: 3 }, { limit: 1000 }]);
  });

  it('takes as many as are needed for more, for a type, and after one', async () => {
    const last = await readEvents(plane, 1, { limit: 2000, types: [] });
    expect([last.length, last[0]?.id, last.at(-1)?.id]).toEqual([2000, 501, 2500]);
    expect(ids(await readEvents(plane, 1, { limit: 2, types: ['route.dead'] }))).toEqual([2301, 2401]);
    expect(ids(await readEvents(plane, 1, { after: 150, limit: 2, types: ['route.dead'] }))).toEqual([201, 301]);
    expect(ids(await readEvents(plane, 1, { after: 1000, limit: 2, types: [] }))).toEqual([1001, 1002]);
    expect(await readEvents(plane, 1, { after: 2500, limit: 2, types: [] })).toEqual([]);
  });

  it('takes none after an id that no event has reached, and finds the newest one', async () => {
    expect(await readEvents(plane, 1, { after: 9999, limit: 2, types: [] })).toEqual([]);
    expect((await findOlderNewest(plane, 1, 9999))?.id).toBe(2500);
    expect([await findOlderNewest(plane, 1, 2500), await findOlderNewest(new Plane(), 1, 7)]).toEqual([null, null]);
  });
});

describe('patience', () => {
  /** Does what fails twice, with this error. */
  async function tryTwice(error: Error) {
    const outages: unknown[] = [];
    const sleeps: number[] = [];
    let attempts = 0;
    const work = async () => {
      attempts += 1;
      if (attempts < 3) throw error;
      return 'done';
    };
    const patience = {
      random: () => 0.5,
      sleep: async (milliseconds: number) => void sleeps.push(milliseconds),
      onOutage: (each: unknown) => void outages.push(each),
    };
    const end = await withPatience(work, patience, ({ lasting }) => !lasting).catch((thrown: unknown) => thrown);
    return { end, outages, sleeps };
  }

  it('outlasts an outage, which it tells of once', async () => {
    const down = new Unreachable('http://x', 'it is down', { delivered: false, heard: false, retryAfterMs: 700 });
    expect(await tryTwice(down)).toEqual({ end: 'done', outages: [down, null], sleeps: [700, 1000] });
  });

  it.each([
    new Intercepted('http://x', 'it answers with HTML', true),
    new Unreachable('http://x', 'bad certificate', {
      delivered: false,
      heard: true,
      retryAfterMs: null,
      lasting: true,
    }),
    new Refused(401, 'reading', 'wrong token', null),
  ])('ends with %s', async (error) => {
    expect(await tryTwice(error)).toEqual({ end: error, outages: [], sleeps: [] });
  });
});

describe('following events', () => {
  /** Follows until `onWait` has been called for each of these steps. */
  async function follow(plane: Plane, last: { id: number; at?: string }, steps: readonly (() => void)[]) {
    const end = new AbortController();
    const left = [...steps];
    plane.onWait = () => {
      const step = left.shift();
      if (step) step();
      else end.abort();
    };
    const outages: boolean[] = [];
    const sleeps: number[] = [];
    const found: unknown[] = [];
    try {
      const following = {
        ...{ last, signal: end.signal, random: () => 0.5 },
        sleep: async (milliseconds: number) => {
          sleeps.push(milliseconds);
          end.signal.throwIfAborted();
        },
        onOutage: (error: unknown) => void outages.push(error !== null),
      };
      for await (const { id } of followEvents(plane, 1, following)) found.push(id);
    } catch (error) {
      if (!end.signal.aborted) throw error;
    }
    return { found, outages, sleeps };
  }

  const add = (plane: Plane, ...added: Event[]) => {
    plane.events = [...plane.events, ...added];
  };

  it('waits for less time than proxies such as nginx allow', async () => {
    const plane = new Plane();
    await follow(plane, { id: 0 }, [() => add(plane, event(1))]);
    expect(plane.asked.map(({ wait }) => wait?.seconds)).toEqual([50, 50]);
  });

  it('gives each once, through an outage', async () => {
    const plane = new Plane();
    const { found, outages, sleeps } = await follow(plane, { id: 0 }, [
      () => add(plane, event(1)),
      () => add(plane, event(2), event(3)),
      () => {
        add(plane, event(4));
        plane.isDown = true;
      },
      () => {},
      () => add(plane, event(5)),
      () => {
        plane.isDown = false;
        add(plane, event(6));
      },
      () => add(plane, event(7)),
    ]);
    expect(found).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(outages).toEqual([true, false]);
    expect(sleeps.slice(0, 3)).toEqual([500, 1000, 2000]);
  });

  it('polls a service that does not wait', async () => {
    const plane = Object.assign(new Plane(), { waits: false });
    const { found, sleeps } = await follow(plane, { id: 0 }, [() => add(plane, event(1)), () => {}]);
    expect([found, sleeps]).toEqual([[1], [5000, 5000]]);
  });

  it('repeats nothing of a database that was restored from a backup', async () => {
    const plane = new Plane();
    add(plane, event(1), event(2), event(3));
    const { found } = await follow(plane, { id: 0 }, [
      () => {
        plane.events = [event(1), event(2, 'peer.offline', event(9).at)];
      },
      () => add(plane, event(3, 'peer.online', event(10).at)),
    ]);
    expect(found).toEqual([1, 2, 3, 2, 3]);
    const restored = Object.assign(new Plane(), { events: [event(1), event(2)] });
    expect(await follow(restored, { id: 9, at: event(9).at }, [])).toMatchObject({ found: [], sleeps: [1000] });
  });

  it('goes on after events whose ids are no numbers', async () => {
    const named = (id: string): Event => ({ ...event(1), id });
    const pages = [[named('b')], [named('b10'), named('a')]];
    const end = new AbortController();
    const readEvents = async () => {
      const events = pages.shift();
      if (events === undefined) throw new Refused(403, 'reading', 'the end', null);
      return { events, waited: true };
    };
    const found: unknown[] = [];
    const following = {
      last: { id: 'c' },
      signal: end.signal,
      random: () => 0.5,
      sleep: async () => {},
      onOutage: () => {},
    };
    await expect(async () => {
      for await (const { id } of followEvents({ readEvents }, 1, following)) found.push(id);
    }).rejects.toThrow('the end');
    expect(found).toEqual(['b', 'b10', 'a']);
  });

  it('ends with a refusal', async () => {
    const plane = new Plane();
    const refused = () => {
      throw new Refused(403, 'reading', 'the network is gone', null);
    };
    await expect(follow(plane, { id: 0 }, [refused])).rejects.toThrow(Refused);
  });
});
