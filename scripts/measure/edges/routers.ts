import { DataCenter } from '../../../test/e2e/data-center.ts';
import { type Cause, type Move, Routers } from '../../../test/e2e/routers.ts';
import type { Comparison } from '../comparison.ts';

/**
 * How long nothing answers when the connector in service changes, with keepalived and BIRD in the
 * LAN, and how many TCP sessions end: so many deaths of its uplink, and as many drains.
 */
export async function compareRouters(rounds = 20): Promise<Comparison[]> {
  const center = await DataCenter.start();
  try {
    const routers = await Routers.start(center);
    const deaths = Math.ceil(rounds / 2);
    const causes: readonly Cause[] = [
      ...Array.from({ length: deaths }, () => 'upstream' as const),
      ...Array.from({ length: rounds - deaths }, (_, index) => (index % 2 === 0 ? 'drain' : 'undrain') as Cause),
    ];
    const moves: Move[] = [];
    for await (const move of routers.move(causes)) {
      moves.push(move);
      process.stderr.write(`${move.cause}, ${move.flow}: ${move.from} to ${move.to}, ${move.seconds.toFixed(2)} s\n`);
    }
    const own = { baseline: 'none', theirs: [] };
    const flows = Object.entries(Object.groupBy(moves, ({ flow }) => flow)).map(([flow, some = []]) => ({
      ...{ what: `move of the connector in service, ${flow}`, ...own, unit: 's' as const },
      ours: some.map(({ seconds }) => seconds),
      target: { atMost: 3, share: 0.95, text: 'p95 ≤ 3 s' },
    }));
    const lost = routers.sessions.filter(({ trouble }) => trouble.length > 0).length;
    const sessions = { what: `TCP sessions that ended in ${rounds} moves`, ...own, unit: 'sessions' as const };
    return [...flows, { ...sessions, ours: [lost], target: { atMost: 0, text: '0' } }];
  } finally {
    await center.stop();
  }
}
