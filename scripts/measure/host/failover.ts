import { DataCenter } from '../../../test/e2e/data-center.ts';
import { type Death, kinds, measureOutages, moments, type Outage } from '../../../test/e2e/outages.ts';
import type { Comparison } from '../comparison.ts';
import { spreadOf } from '../spread.ts';
import { compareReturns } from './returns.ts';

/**
 * Seconds, as Tailscale publishes it in "Set up high availability" (tailscale.com/kb/1115): up to
 * so long, and not measured here.
 */
const published = 15;
/** Seconds that a failover may take at most. */
const limit = 3;

/**
 * Data centers that are measured side by side: in one, most of the time is spent waiting for a
 * connector to be trusted again.
 */
const labsAtMost = 4;

/** The hosts that see a failover. */
const users = { origin: 'an origin server', laptop: 'a laptop behind a NAT' };

/**
 * How long nothing answers when the connector that serves a route dies, so many times: for an
 * origin server, and for a laptop behind a NAT. Prints each one as it happens, the spread of each
 * kind and moment, and the log of one that took too long.
 */
export async function compareFailover(rounds = 20): Promise<Comparison[]> {
  const outages: Outage[] = [];
  const deaths = listDeaths(rounds);
  const share = Math.ceil(rounds / Math.min(labsAtMost, Math.ceil(rounds / 20)));
  const ends = await Promise.allSettled(
    Array.from({ length: Math.ceil(rounds / share) }, async (_, lab) => {
      const center = await DataCenter.start();
      try {
        for await (const outage of measureOutages(center, deaths.slice(lab * share, (lab + 1) * share))) {
          outages.push(outage);
          process.stderr.write(describeOutage(outage, outages.length));
        }
      } finally {
        await center.stop();
      }
    }),
  );
  process.stderr.write(describeSpreads(outages));
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
  const failovers = Object.entries(users).map(([name, user]) => ({
    what: `failover of a route, measured at ${user}`,
    ...{ baseline: 'Tailscale, as published, not measured', unit: 's' as const, theirs: [published] },
    ours: outages.filter(({ host }) => host === name).map(({ seconds }) => seconds),
    target: { atMost: limit, text: `each < ${limit} s` },
  }));
  return [...failovers, ...(await compareReturns())];
}

/** So many deaths: each kind at each moment in turn. */
export function listDeaths(rounds: number): Death[] {
  const deaths = moments.flatMap((moment) => kinds.map((kind) => ({ kind, moment })));
  return Array.from({ length: rounds }, (_, round) => deaths[round % deaths.length] as Death);
}

function describeOutage(outage: Outage, number: number): string {
  const { kind, moment, host, lost, servedBy, seconds, withoutHandshake, at, log } = outage;
  const handshake =
    withoutHandshake === null ? '' : withoutHandshake ? ', no handshake with the standby' : ', handshake made';
  const line = `${number}: ${kind}, ${moment}, ${host}: ${lost} to ${servedBy}, ${seconds.toFixed(2)} s${handshake}\n`;
  if (seconds <= limit) return line;
  return `${line}  over ${limit} s; died at ${new Date(at).toISOString()}\n${log.map((each) => `  ${each}\n`).join('')}`;
}

/** A table of the outages: a row for each kind and moment, and one for all. */
export function describeSpreads(outages: readonly Outage[]): string {
  const rows = Object.groupBy(outages, ({ kind, moment }) => `${kind}, ${moment}`);
  const lines = Object.entries({ ...rows, all: outages }).map(([name, some = []]) => {
    if (some.length === 0) return `| ${name} | 0 | | | | |\n`;
    const { p50, p95, max } = spreadOf(some.map(({ seconds }) => seconds));
    const late = some.filter(({ seconds }) => seconds > limit).length;
    return `| ${[name, some.length, ...[p50, p95, max].map((each) => each.toFixed(2)), late].join(' | ')} |\n`;
  });
  const heading = ['death', 'outages', 'p50 s', 'p95 s', 'max s', `over ${limit} s`];
  return `| ${heading.join(' | ')} |\n|${' --- |'.repeat(heading.length)}\n${lines.join('')}`;
}
