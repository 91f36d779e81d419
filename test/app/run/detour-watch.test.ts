import { expect, it } from 'vitest';
import { passNetwork } from '../../../src/app/pass.ts';
import { DetourWatch } from '../../../src/app/run/detour-watch.ts';
import { survey } from '../../../src/app/survey.ts';
import type { Tools } from '../../../src/app/tools.ts';
import { dialled, peer } from '../../core/samples.ts';
import { Desk, joinedTo, mapAt } from '../desk.ts';

const other = peer(2, { type: 'connector', endpoint: dialled(2) });
const host = peer(4, { endpoint: dialled(4) });
const joined = joinedTo(mapAt('"1"', [other, host]));
/** This host as one of two connectors. */
const connector = { ...joined, enrollment: { ...joined.enrollment, type: 'connector' as const } };
const withoutHost = { ...connector, membership: { ...connector.membership, map: mapAt('"2"', [other]) } };

/** Watches the hosts for a while; at the seconds named, something happens. Tells who was out of reach when. */
async function watch(desk: Desk, seconds: number, events: Readonly<Record<number, (watch: DetourWatch) => unknown>>) {
  const begun = desk.seconds;
  const ended = new AbortController();
  const told: { at: number; lost: readonly unknown[] }[] = [];
  const tools: Tools = {
    ...desk.tools,
    sleep: async (milliseconds) => {
      await desk.tools.sleep(milliseconds);
      await events[desk.seconds - begun]?.(detours);
      if (desk.seconds - begun >= seconds) ended.abort();
    },
  };
  const detours = new DetourWatch(tools, 'cpn0', () => {
    told.push({ at: desk.seconds - begun, lost: detours.failed.map((each) => each.peer) });
  });
  detours.follow(await survey(desk.tools, connector));
  await detours.watch(ended.signal);
  return told;
}

async function up(): Promise<Desk> {
  const desk = await Desk.with(connector);
  await passNetwork(desk.tools, 'cpn0', { map: null, resolved: null }, { withinMs: 1 });
  desk.touch(4, { rxBytes: 100, txBytes: 100 });
  return desk;
}

it('a host that was sent to and is not heard is out of reach, until it is heard', async () => {
  const desk = await up();
  const told = await watch(desk, 60, {
    5: () => desk.touch(4, { txBytes: 200 }),
    40: () => desk.touch(4, { rxBytes: 132 }),
  });
  expect(told).toEqual([
    { at: 25, lost: [4] },
    { at: 40, lost: [] },
  ]);
});

it('a host that left the network and came back is not judged by what was seen of it before', async () => {
  const desk = await up();
  const seen = await survey(desk.tools, connector);
  const told = await watch(desk, 60, {
    5: () => desk.touch(4, { txBytes: 200 }),
    10: async (detours) => {
      detours.follow({ ...seen, state: withoutHost });
      await desk.tools.sleep(30_000);
      detours.follow(seen);
    },
  });
  expect(told).toEqual([]);
});
