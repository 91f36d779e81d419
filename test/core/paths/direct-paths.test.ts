import { describe, expect, it } from 'vitest';
import {
  type Counters,
  type DirectPath,
  handlePathEvent,
  nextMoment,
  type PathAction,
  type PathEvent,
  pathsInUse,
  resumePaths,
} from '../../../src/core/paths/direct-paths.ts';

/** The paths of one host through a series of events, each at its time. */
class Paths {
  now = 0;
  paths: readonly DirectPath[];
  actions: PathAction[] = [];

  constructor(paths: readonly DirectPath[] = []) {
    this.paths = paths;
  }

  at(now: number, event: PathEvent): this {
    this.now = now;
    const handled = handlePathEvent(this.paths, event, now);
    this.paths = handled.paths;
    this.actions = [...handled.actions];
    return this;
  }

  /** The counters of peer 2. */
  see(now: number, rxBytes: number, txBytes: number, changes: Partial<Counters> = {}): this {
    const counters = { rxBytes, txBytes, keepalive: 25, ...changes };
    return this.at(now, { event: 'observed', peers: new Map([[2, counters]]) });
  }

  /** The clock comes to a moment. */
  come(now: number): this {
    return this.at(now, { event: 'moment' });
  }

  get used() {
    return pathsInUse(this.paths);
  }
}

const proven = (by: 'probe' | 'handshake' = 'probe') => ({ event: 'proven', peer: 2, attempt: 7, by }) as const;
const moment = { event: 'switch', peer: 2, attempt: 7, switch_in_ms: 300, roundTrip: 40 } as const;
const direct = (by: 'probe' | 'handshake' = 'probe') => new Paths().at(0, proven(by)).at(100, moment).come(380);
const none = new Map();

describe('a path', () => {
  it('is used from the moment that both hosts have, half a round trip earlier', () => {
    const paths = new Paths().at(0, proven()).at(100, moment);
    expect([paths.used, paths.actions, nextMoment(paths.paths, 100)]).toEqual([[], [], 380]);
    expect(paths.come(379).used).toEqual([]);
    expect(paths.see(380, 0, 0).used).toEqual([]);
    expect(paths.come(380).actions).toEqual([{ do: 'switch', peer: 2 }]);
    expect(paths.used).toEqual([2]);
  });

  it('is not used without a proof of the same attempt', () => {
    expect(new Paths().at(100, moment).paths).toEqual([]);
    const other = new Paths().at(0, proven()).at(100, { ...moment, attempt: 6 });
    expect(other.come(1_000).used).toEqual([]);
    expect(other.at(2_000, { ...moment, peer: 3 }).come(3_000).used).toEqual([]);
  });

  it('is forgotten if no moment comes, and its peer removed', () => {
    const paths = new Paths().at(0, proven());
    expect(nextMoment(paths.paths, 0)).toBe(10_000);
    expect(paths.see(9_999, 0, 0).actions).toEqual([]);
    // The peer may have switched, and gets a message of the service.
    expect(paths.see(10_000, 0, 0).actions).toEqual([{ do: 'forget', peer: 2, why: 'lost' }]);
    expect([paths.paths, nextMoment(paths.paths, 10_000)]).toEqual([[], null]);
  });

  it('must answer at once if only a handshake proved it', () => {
    const paths = direct('handshake');
    expect(paths.actions).toEqual([
      { do: 'switch', peer: 2 },
      { do: 'probe', peer: 2, by: 'handshake' },
    ]);
    expect(paths.at(1_000, { event: 'probed', peer: 2, isAnswered: false }).actions).toEqual([
      { do: 'return', peer: 2, why: 'lost' },
    ]);
    expect(direct('handshake').at(1_000, { event: 'probed', peer: 2, isAnswered: true }).used).toEqual([2]);
  });

  it('stays while packets arrive, and while only keepalives are sent', () => {
    const paths = direct();
    for (let second = 1; second < 200; second += 1)
      expect(paths.see(second * 1_000, 0, 32 * Math.floor(second / 25)).actions).toEqual([]);
    for (let second = 200; second < 220; second += 1) {
      expect(paths.see(second * 1_000, second * 96, second * 5_000).actions).toEqual([]);
    }
  });

  it('is probed after 1 to 2 s without an answer to what was sent, once, and left if the probe fails', () => {
    const paths = direct().see(1_000, 500, 500).see(1_900, 500, 900);
    expect(paths.actions).toEqual([]);
    expect(paths.see(2_000, 500, 1_300).actions).toEqual([{ do: 'probe', peer: 2, by: 'probe' }]);
    expect(paths.see(3_500, 500, 1_700).actions).toEqual([]);
    expect(paths.at(3_700, { event: 'probed', peer: 2, isAnswered: false }).actions).toEqual([
      { do: 'return', peer: 2, why: 'lost' },
    ]);
    expect(paths.used).toEqual([]);
  });

  it('stays if the probe is answered, as when packets go in one direction alone', () => {
    const paths = direct().see(1_000, 500, 500).see(2_000, 500, 900).see(3_000, 500, 1_300);
    expect(paths.at(3_100, { event: 'probed', peer: 2, isAnswered: true }).used).toEqual([2]);
    expect(paths.see(3_200, 640, 1_500).see(4_000, 640, 1_900).actions).toEqual([]);
  });

  it('is probed once when it falls silent after use: the peer may have left it', () => {
    const paths = direct().see(1_000, 500, 500).see(2_000, 5_000, 9_000).see(3_000, 5_000, 9_000);
    expect(paths.actions).toEqual([]);
    expect(paths.see(4_000, 5_000, 9_000).actions).toEqual([{ do: 'probe', peer: 2, by: 'probe' }]);
    paths.at(4_100, { event: 'probed', peer: 2, isAnswered: true });
    for (let second = 5; second < 100; second += 1)
      expect(paths.see(second * 1_000, 5_000, 9_000 + 32 * Math.floor(second / 25)).actions).toEqual([]);
  });

  // A firewall may drop the echoes of one host: then the answer to its probe comes over TCP.
  it.each([
    ['answers', 2_904],
    ['drops', 80],
  ])('is probed once by each host after use, and ends after 5 minutes, if the peer %s echoes', (_, answer) => {
    const one = { paths: direct().see(1_000, 0, 0), sent: 9_000, probes: 0 };
    const other = { paths: direct().see(1_500, 0, 0), sent: 20_000, probes: 0 };
    for (let now = 2_000; now < 310_000; now += 500) {
      const [self, peer] = now % 1_000 === 0 ? [one, other] : [other, one];
      if (now % 25_000 === 0) self.sent += 32;
      const { actions } = self.paths.see(now, peer.sent, self.sent);
      if (actions[0]?.do !== 'probe') continue;
      self.probes += 1;
      self.sent += 2_904;
      peer.sent += self === one ? answer : 2_904;
      self.paths.at(now + 100, { event: 'probed', peer: 2, isAnswered: true });
    }
    expect([one, other].map(({ paths, probes }) => [paths.used, probes])).toEqual(Array(2).fill([[], 1]));
  });

  it('ignores the late result of a probe that it did not send', () => {
    expect(direct().at(1_000, { event: 'probed', peer: 2, isAnswered: false }).used).toEqual([2]);
  });

  it('ends after 5 minutes with nothing but keepalives and handshakes', () => {
    const paths = direct().see(1_000, 5_000, 5_000);
    const upkeep = (second: number, handshake: number) =>
      5_000 + 32 * Math.floor(second / 25) + handshake * Math.floor(second / 120);
    const see = (second: number) => paths.see(second * 1_000, upkeep(second, 92), upkeep(second, 148)).actions;
    for (let second = 2; second < 301; second += 1) expect(see(second)).toEqual([]);
    expect(see(301)).toEqual([{ do: 'return', peer: 2, why: 'idle' }]);
  });

  it('does not end while a little is exchanged each minute', () => {
    const paths = direct();
    for (let minute = 1; minute < 20; minute += 1) {
      paths.see(minute * 60_000, minute * 600, minute * 600);
      if (paths.actions.length > 0) paths.at(minute * 60_000 + 100, { event: 'probed', peer: 2, isAnswered: true });
      expect(paths.used).toEqual([2]);
    }
  });

  it('is probed after 30 s of use too where a handshake proved it, or an earlier process', () => {
    const ofHandshake = direct('handshake').at(400, { event: 'probed', peer: 2, isAnswered: true });
    for (const [paths, by] of [
      [ofHandshake, 'handshake'],
      [new Paths(resumePaths([2], 0)), null],
    ] as const) {
      const probes = Array.from({ length: 40 }, (_, at) => at + 1).flatMap((second) => {
        return paths.see(second * 1_000, second * 96, second * 5_000).actions;
      });
      expect(probes).toEqual([{ do: 'probe', peer: 2, by }]);
    }
  });

  it('is probed after 30 s of use, and left if two full-size probes are not answered while packets arrive', () => {
    const probe = { do: 'probe', peer: 2, by: 'probe' };
    const miss = { event: 'probed', peer: 2, isAnswered: false } as const;
    const paths = direct();
    const use = (second: number) => paths.see(second * 1_000, second * 96, second * 5_000).actions;
    for (let second = 1; second < 32; second += 1) expect(use(second)).toEqual([]);
    expect(use(32)).toEqual([probe]);
    expect(paths.at(32_500, { ...miss, isAnswered: true }).used).toEqual([2]);
    // A packet may be lost.
    for (let second = 33; second < 64; second += 1) expect(use(second)).toEqual([]);
    expect([use(64), paths.at(64_500, miss).used, use(65)]).toEqual([[probe], [2], [probe]]);
    expect(paths.at(65_500, { ...miss, isAnswered: true }).used).toEqual([2]);
    for (let second = 66; second < 97; second += 1) expect(use(second)).toEqual([]);
    expect([use(97), paths.at(97_500, miss).actions, use(98)]).toEqual([[probe], [], [probe]]);
    expect(paths.at(98_500, miss).actions).toEqual([{ do: 'return', peer: 2, why: 'lost' }]);
  });

  it('ends if the other host left it, if it does not answer after a move, or if the peer is gone', () => {
    expect(direct().at(1_000, { event: 'return', peer: 2 }).actions).toEqual([{ do: 'return', peer: 2, why: null }]);
    expect(direct().at(1_000, { event: 'return', peer: 3 }).used).toEqual([2]);
    const moved = direct().at(1_000, { event: 'moved' });
    expect([moved.actions, moved.used]).toEqual([[{ do: 'probe', peer: 2, by: 'probe' }], [2]]);
    expect(moved.at(1_700, { event: 'probed', peer: 2, isAnswered: false }).actions).toEqual([
      { do: 'return', peer: 2, why: 'moved' },
    ]);
    const both = direct().at(1_000, { event: 'moved' }).at(1_100, { event: 'return', peer: 2 });
    expect(both.actions).toEqual([{ do: 'return', peer: 2, why: 'moved' }]);
    const still = direct().at(1_000, { event: 'moved' }).at(1_100, { event: 'probed', peer: 2, isAnswered: true });
    expect([still.actions, still.used]).toEqual([[], [2]]);
    expect(direct().at(1_000, { event: 'observed', peers: none }).actions).toEqual([
      { do: 'return', peer: 2, why: 'removed' },
    ]);
    expect(new Paths().at(0, proven()).at(10, { event: 'moved' }).actions).toEqual([
      { do: 'forget', peer: 2, why: 'moved' },
    ]);
  });

  it('of an earlier process goes on, and a new proof does not interrupt it', () => {
    const paths = new Paths(resumePaths([2], 0));
    expect(paths.used).toEqual([2]);
    expect(paths.at(1_000, proven()).used).toEqual([2]);
    expect(nextMoment(paths.paths, 1_000)).toBe(2_000);
    // The counters begin again if the peer is removed and added.
    expect(paths.see(2_000, 900, 900).see(3_000, 0, 148).actions).toEqual([]);
  });
});
