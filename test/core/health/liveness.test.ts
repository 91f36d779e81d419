import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  isLasting,
  isUncertain,
  type Liveness,
  needsHandshake,
  recordAnswer,
  recordClosed,
  recordHandshake,
  recordTime,
  resetSilence,
  unknownLiveness,
} from '../../../src/core/health/liveness.ts';

const trusted = recordAnswer(unknownLiveness('trusted'), 'answer');

const pace = { seconds: 0.5, every: 0.5, inService: false, hasOther: false, isNamedRelay: false, isOnlyRelay: false };

/** Looks every half second, at a connector that answers or not. */
function look(liveness: Liveness, seconds: number, answers: boolean): Liveness {
  let now = liveness;
  for (let at = 0; at < seconds; at += 0.5) {
    now = recordTime(now, pace);
    if (answers) now = recordAnswer(now, 'answer');
  }
  return now;
}

const inService = { inService: true, hasOther: true };

/** A round half a second after the last: what came since then is read first, and a handshake is forced last. */
function round(before: Liveness, came: 'answer' | 'traffic' | null, circumstances = inService): Liveness {
  const heard = came === null ? before : recordAnswer(before, came);
  return recordHandshake(recordTime(heard, { ...pace, ...circumstances }), circumstances);
}

/** The time from one probe to the next of a connector that is mute, silent or stands by. */
const probe = (before: Liveness, circumstances: typeof inService): Liveness =>
  recordTime(before, { ...pace, ...circumstances, seconds: 2.5, every: 2.5 });

/** The first round, in which the first question is asked. */
const asked = recordTime(unknownLiveness('trusted'), { ...pace, ...inService, seconds: 0 });

/** Seconds until one that nothing comes of any more is silent. */
function secondsToSilence(before: Liveness, circumstances = inService): number {
  let seconds = 0;
  for (let now = before; now.state !== 'silent'; seconds += 0.5) now = round(now, null, circumstances);
  return seconds;
}

describe('the liveness of a connector', () => {
  it('ends with its answer that it serves nothing, whatever else comes from it, until it answers otherwise', () => {
    const closed = recordClosed(trusted);
    expect(closed).toMatchObject({ state: 'silent', failures: 1 });
    let now = closed;
    for (let at = 0; at < 120; at += 2.5) {
      now = recordClosed(recordTime(recordAnswer(now, 'traffic'), { ...pace, ...inService, seconds: 2.5, every: 2.5 }));
      expect(now).toMatchObject({ state: 'silent', failures: 1 });
    }
    expect(look(now, 10, true).state).toBe('back');
  });

  it('ends after two and a half intervals without an answer', () => {
    expect(look(trusted, 1, false).state).toBe('trusted');
    expect(look(trusted, 1.5, false).state).toBe('silent');
    const silence = { ...pace, every: 2, seconds: 0.25 };
    expect(recordTime({ ...trusted, silence: 4.5 }, silence).state).toBe('trusted');
    expect(recordTime({ ...trusted, silence: 4.75 }, silence).state).toBe('silent');
  });

  it('is uncertain before that, so that counters are read', () => {
    const uncertain = look(trusted, 1, false);
    expect(isUncertain(uncertain, pace)).toBe(true);
    expect(isUncertain(look(trusted, 60, true), pace)).toBe(false);
    expect(look(recordAnswer(uncertain, 'traffic'), 1, false).state).toBe('trusted');
  });

  it('is not uncertain until half a pace after the answer is due, or a whole one of a mute peer', () => {
    const uncertainAfter = (silence: number, answers: boolean) =>
      isUncertain({ ...trusted, silence, answers }, { every: 2 });
    expect([uncertainAfter(2.8, true), uncertainAfter(3, true)]).toEqual([false, true]);
    expect([uncertainAfter(2, false), uncertainAfter(2.1, false)]).toEqual([false, true]);
  });

  it('does not count silence at the pace before, except of a silent one', () => {
    const uncertain = look(trusted, 1, false);
    expect(resetSilence(uncertain)).toEqual({ ...uncertain, silence: 0 });
    const silent = look(trusted, 10, false);
    expect(resetSilence(silent)).toBe(silent);
  });

  it('ends later if a firewall drops the probes', () => {
    const mute = recordAnswer({ ...asked, well: 1 }, 'traffic');
    expect(look(mute, 14.5, false).state).toBe('trusted');
    expect(look(mute, 15, false).state).toBe('silent');
  });

  it.each([
    ['in service', inService],
    ['that stands by', { inService: false, hasOther: true }],
  ])(
    'of a mute one %s does not end after the answers that the reload of a firewall lets through',
    (_, circumstances) => {
      let now = recordAnswer({ ...asked, well: 1 }, 'traffic');
      for (const answers of [1, 2, 4]) {
        for (let each = 0; each < answers; each += 1) now = probe(recordAnswer(now, 'answer'), circumstances);
        // Its keepalive comes 10 s after a probe.
        for (let each = 0; each < 4; each += 1) now = probe(now, circumstances);
        expect(now).toMatchObject({ state: 'trusted', failures: 0 });
        now = recordAnswer(now, 'traffic');
      }
    },
  );

  it('of a mute one ends soon again, once it answered for ten seconds', () => {
    const mute = recordAnswer({ ...asked, well: 1 }, 'traffic');
    const answersAfter = (answers: number) => {
      let now = recordAnswer(mute, 'answer');
      for (let each = 1; each < answers; each += 1) now = recordAnswer(probe(now, inService), 'answer');
      return now;
    };
    expect([1, 4, 5].map((answers) => secondsToSilence(answersAfter(answers)))).toEqual([15, 15, 1.5]);
    // Answers far apart are those of several reloads.
    let now = mute;
    for (let each = 0; each < 20; each += 1) {
      for (let pause = 0; pause < 3; pause += 1) now = probe(now, inService);
      now = recordAnswer(now, 'answer');
    }
    expect(secondsToSilence(now)).toBe(15);
  });

  it('of a silent one does not return after five seconds for a single answer', () => {
    let now = recordAnswer(unknownLiveness('silent'), 'answer');
    for (let each = 0; each < 5; each += 1) now = probe(now, inService);
    expect(now).toMatchObject({ state: 'silent', failures: 1 });
  });

  it.each([
    ['2 s where another is heard', inService, 2],
    ['15 s where no other is heard', { inService: true, hasOther: false }, 15],
    ['15 s while it stands by', { inService: false, hasOther: true }, 15],
  ])('ends before it was ever heard after %s', (_, circumstances, seconds) => {
    expect(secondsToSilence(asked, circumstances)).toBe(seconds);
  });

  it('takes, before it was ever heard, a second for a handshake that is forced once another is heard', () => {
    let now = asked;
    const pass = (seconds: number, hasOther: boolean) => {
      for (let at = 0; at < seconds; at += 0.5) now = round(now, null, { inService: true, hasOther });
      return now.state;
    };
    expect([pass(10, false), pass(1, true)]).toEqual(['trusted', 'trusted']);
    // This host was cut off meanwhile, and another handshake is forced.
    expect([pass(0.5, false), pass(1, true), pass(0.5, true)]).toEqual(['trusted', 'trusted', 'silent']);
  });

  it('of a new one is contested after a second, in service and where another is heard', () => {
    const silent = (silence: number) => ({ ...asked, silence });
    expect([0.5, 1].map((seconds) => needsHandshake(silent(seconds), inService))).toEqual([false, true]);
    expect(needsHandshake(silent(1), { inService: false, hasOther: true })).toBe(false);
    expect(needsHandshake(silent(1), { inService: true, hasOther: false })).toBe(false);
    expect(needsHandshake(recordAnswer(silent(1), 'traffic'), inService)).toBe(false);
    expect(needsHandshake({ ...silent(1), answers: true }, inService)).toBe(false);
  });

  it('of a new one is uncertain at once, and ends later where it is heard again a second after the first time', () => {
    expect(isUncertain(asked, pace)).toBe(true);
    const mute = round(round(round(asked, 'traffic'), null), 'traffic');
    expect(isUncertain({ ...mute, silence: 0.5 }, pace)).toBe(false);
    expect(secondsToSilence(mute)).toBe(14.5);
  });

  it('counts after a time without probes only where a session lives, and it answered and was trusted', () => {
    expect([true, false].map((hasSession) => isLasting(trusted, hasSession))).toEqual([true, false]);
    expect(isLasting(look(trusted, 10, false), true)).toBe(false);
    expect(isLasting(recordAnswer(asked, 'traffic'), true)).toBe(false);
    for (const state of ['silent', 'back'] as const) expect(isLasting({ ...trusted, state }, true)).toBe(false);
  });

  it('returns to service at once where it carries packets for want of another, and else to probation', () => {
    const silent = look(trusted, 10, false);
    expect(silent.state).toBe('silent');
    const returned = (isServing: boolean) => {
      let now = silent;
      for (let each = 0; each < 60 && now.state === 'silent'; each += 1)
        now = round(now, 'answer', { inService: isServing, hasOther: false });
      return now.state;
    };
    expect([returned(true), returned(false)]).toEqual(['trusted', 'back']);
  });

  it('ends soon after any moment at which it was known to answer', () => {
    const events = fc.array(fc.tuple(fc.constantFrom('answer', 'traffic', null), fc.boolean(), fc.boolean()));
    fc.assert(
      fc.property(events, (history) => {
        let now = asked;
        for (const [came, isServing, hasOther] of history) {
          now = round(now, came, { inService: isServing, hasOther });
          if (now.state === 'silent' || now.answers !== true) continue;
          // It may have been on standby until now.
          expect(secondsToSilence(resetSilence(now))).toBe(1.5);
          expect(secondsToSilence(now)).toBeLessThanOrEqual(1.5);
        }
      }),
    );
  });

  it('ends soon after the death of a new one, whenever its session began and another was heard', () => {
    const moment = fc.integer({ min: 0, max: 160 }).map((ticks) => ticks / 20);
    const moments = fc.record({ session: moment, life: moment, other: moment, delay: moment.map((each) => each / 20) });
    const pauses = fc.infiniteStream(fc.integer({ min: 10, max: 15 }).map((ticks) => ticks / 20));
    fc.assert(
      fc.property(moments, fc.boolean(), pauses, ({ session, life, other, delay }, isBusy, pausesTaken) => {
        const death = session + life;
        const answers: number[] = [];
        let now = asked;
        let at = 0;
        for (const pause of pausesTaken) {
          if (at >= session && at + delay < death) answers.push(at + delay);
          const before = at;
          at += pause;
          const isWithin = (time: number) => time >= before && time < at;
          if (answers.some(isWithin)) now = recordAnswer(now, 'answer');
          // The first packets come as the session begins, and others all the time where it is used.
          const isHeard = isWithin(session) || (isBusy && at > session && before < death);
          const circumstances = { inService: true, hasOther: other <= at };
          const heard = isHeard ? recordAnswer(now, 'traffic') : now;
          now = recordHandshake(recordTime(heard, { ...pace, ...circumstances, seconds: pause }), circumstances);
          // A forced handshake is answered at once.
          if (now.forced === 0 && at >= session && at < death) now = recordAnswer(now, 'traffic');
          if (now.state === 'silent') break;
        }
        expect(at).toBeLessThanOrEqual(Math.max(death, other) + 3);
      }),
    );
  });

  it('does not end while a firewall drops the questions, but no handshake', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.boolean(), fc.boolean()), { maxLength: 200 }), (history) => {
        let now = asked;
        let quiet = 0;
        for (const [hasTraffic, hasOther] of history) {
          // What receives a question sends a keepalive after 10 s.
          const isHeard = hasTraffic || now.forced === 0 || quiet >= 10;
          quiet = isHeard ? 0 : quiet + 0.5;
          now = round(now, isHeard ? 'traffic' : null, { inService: true, hasOther });
          expect(now.state).toBe('trusted');
        }
      }),
    );
  });

  it('does not count the time between two distant observations', () => {
    expect(recordTime(trusted, { ...pace, seconds: 3600 }).state).toBe('trusted');
  });

  it('comes back sooner if it is the named relay, later after each further failure, and never later than another', () => {
    const relay = { ...pace, isNamedRelay: true };
    const secondsUntilBack = (failures: number) => {
      let now: Liveness = { ...look(trusted, 10, false), failures, answers: true };
      for (let seconds = 0; ; seconds += 0.5) {
        now = recordAnswer(recordTime(now, relay), 'answer');
        if (now.state === 'back') return seconds;
      }
    };
    expect([1, 2, 3, 9].map(secondsUntilBack)).toEqual([2.5, 4, 5, 5]);
  });

  it('comes back after five seconds, and is trusted after a healthy minute', () => {
    const silent = look(trusted, 10, false);
    expect(look(silent, 4.5, true).state).toBe('silent');
    expect(look(silent, 5.5, true).state).toBe('back');
    expect(look(silent, 59, true).state).toBe('back');
    expect(look(silent, 61, true).state).toBe('trusted');
  });

  it('comes back after twenty seconds where it is only heard', () => {
    const silent = unknownLiveness('silent');
    expect(silent).toMatchObject({ answers: false, failures: 1 });
    const heard = (seconds: number) => {
      let now: Liveness = silent;
      for (let at = 0; at < seconds; at += 0.5) now = recordTime(recordAnswer(now, 'traffic'), pace);
      return now.state;
    };
    expect([heard(19.5), heard(20)]).toEqual(['silent', 'back']);
  });

  it('is trusted at once when it had to step in: another that comes back does not send it away', () => {
    const back = look(look(trusted, 10, false), 10, true);
    expect(recordTime(back, { ...pace, inService: true }).state).toBe('trusted');
  });

  it('is not trusted earlier because the map names it as the relay, while it carries no route', () => {
    const relay = { ...pace, inService: true, isNamedRelay: true, isOnlyRelay: true };
    const secondsUntil = (state: Liveness['state']) => {
      let now = look(trusted, 10, false);
      for (let seconds = 0; ; seconds += 0.5) {
        now = recordAnswer(recordTime(now, relay), 'answer');
        if (now.state === state) return seconds;
      }
    };
    expect(secondsUntil('back')).toBeLessThan(5);
    expect(secondsUntil('trusted')).toBe(60);
  });

  it('is trusted later each time that it fails, and at last forgiven', () => {
    let flapping = trusted;
    const waits = [1, 2, 3, 4, 5, 6].map(() => {
      flapping = look(flapping, 2, false);
      let waited = 0;
      for (; flapping.state !== 'trusted'; waited += 0.5) flapping = look(flapping, 0.5, true);
      return Math.floor(waited / 60);
    });
    expect(waits).toEqual([1, 2, 4, 8, 16, 16]);
    expect(look(flapping, 2600, true).failures).toBeGreaterThan(0);
    expect(look(flapping, 3601, true).failures).toBe(0);
  });

  it('is lost on probation as fast as else', () => {
    const back = look(look(trusted, 10, false), 20, true);
    expect(look(back, 1.5, false).state).toBe('silent');
  });

  it('never ends for one that answers two of three probes', () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { maxLength: 300 }), (answers) => {
        let now = trusted;
        for (const [index, answered] of answers.entries()) {
          now = recordTime(now, pace);
          if (answered || index % 3 !== 0) now = recordAnswer(now, 'answer');
          expect(now.state).toBe('trusted');
        }
      }),
    );
  });
});

it('a connector that became silent must prove again that it answers probes: a firewall may have been added', () => {
  const used = look(trusted, 20, true);
  expect(used.answers).toBe(true);
  const silent = look(used, 5, false);
  expect(silent).toMatchObject({ state: 'silent', answers: false, answered: null });
  expect(recordAnswer(silent, 'answer').answers).toBe(false);
  expect(look(silent, 3, true).answers).toBe(true);
});

it('the first answer of a silent connector proves nothing, however long after the first probe it comes', () => {
  const pause = { ...pace, seconds: 2.5, every: 2.5 };
  const first = recordAnswer(recordTime(unknownLiveness('silent'), pause), 'answer');
  expect(first).toMatchObject({ answers: false, answered: 0 });
  expect(recordAnswer(recordTime(first, pause), 'answer')).toMatchObject({ answers: true, answered: 2.5 });
});
