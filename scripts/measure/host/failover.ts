import { DataCenter } from '../../../test/e2e/data-center.ts';
import { measureOutages } from '../../../test/e2e/outages.ts';
import type { Comparison } from '../comparison.ts';

const rounds = 20;

/** Seconds, as Tailscale publishes it in "Set up high availability" (tailscale.com/kb/1115): up to so long, and not measured here. */
const published = 15;

/** The hosts that see a failover. */
const users = { origin: 'an origin server', laptop: 'a laptop behind a NAT' };

/** How long nothing answers when the connector that serves a route dies: for an origin server, and for a laptop behind a NAT. */
export async function compareFailover(): Promise<Comparison[]> {
  const center = await DataCenter.start();
  try {
    const outages = await measureOutages(center, rounds);
    return Object.entries(users).map(([name, user]) => ({
      what: `failover of a route, measured at ${user}`,
      ...{ baseline: 'Tailscale, as published, not measured', unit: 's', theirs: [published] },
      ours: outages.filter(({ host }) => host === name).map(({ seconds }) => seconds),
      target: { share: 0.95, atMost: 3, text: 'p95 < 3 s' },
    }));
  } finally {
    await center.stop();
  }
}
