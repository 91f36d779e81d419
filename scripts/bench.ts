import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { root } from '../packaging/source.ts';
import { type Comparison, cellsOf, conclude, heading } from './measure/comparison.ts';
import { compareProxies } from './measure/edges/proxies.ts';
import { compareRouters } from './measure/edges/routers.ts';
import { compareShares } from './measure/edges/shares.ts';
import { benchFigures } from './measure/figure-bench.ts';
import { compareDeadHosts } from './measure/health/dead-hosts.ts';
import { compareFailoverEvents } from './measure/health/failover-events.ts';
import { compareFalseAlarms } from './measure/health/false-alarms.ts';
import { compareReportBytes } from './measure/health/report-bytes.ts';
import { compareBringUp } from './measure/host/bring-up.ts';
import { compareChange } from './measure/host/change.ts';
import { compareChurn } from './measure/host/churn.ts';
import { compareFailover } from './measure/host/failover.ts';
import { compareIdle } from './measure/host/idle.ts';
import { compareJoin } from './measure/host/join.ts';
import { compareLive } from './measure/host/live.ts';
import { compareMaps } from './measure/host/maps.ts';
import { minutesOf } from './measure/host/minutes.ts';
import { comparePasses } from './measure/host/passes.ts';
import { compareReach } from './measure/host/reach.ts';
import { compareRelayDeaths } from './measure/host/relay-deaths.ts';
import { compareRevoke } from './measure/host/revoke.ts';
import { compareStart } from './measure/host/start.ts';
import { compareTables } from './measure/host/tables.ts';
import { compareNames } from './measure/names/names.ts';
import { comparePaths } from './measure/paths/paths.ts';
import { compareRules } from './measure/rules/rules.ts';
import { compareAudit } from './measure/service/audit.ts';
import { measureConsole } from './measure/service/console.ts';
import { compareGrowth } from './measure/service/growth.ts';
import { compareLogins } from './measure/service/logins.ts';
import { benchPush } from './measure/service/push-bench.ts';

const subjects: Readonly<Record<string, (rounds?: number) => Promise<Comparison[]>>> = {
  start: compareStart,
  'bring-up': () => compareBringUp(),
  passes: comparePasses,
  tables: compareTables,
  change: compareChange,
  idle: compareIdle,
  churn: compareChurn,
  'control-plane': () => compareGrowth(),
  console: () => measureConsole(),
  join: compareJoin,
  failover: compareFailover,
  health: compareFailoverEvents,
  offline: (rounds) => compareDeadHosts(rounds),
  reports: compareReportBytes,
  proxies: compareProxies,
  live: compareLive,
  reach: compareReach,
  revoke: compareRevoke,
  relay: compareRelayDeaths,
  paths: comparePaths,
  names: compareNames,
  maps: compareMaps,
  routers: compareRouters,
  rules: compareRules,
  audit: compareAudit,
  logins: compareLogins,
  spread: compareShares,
};

/** What `check` measures where no subject is named, the rows of some that take seconds alone. */
const quickSubjects = {
  start: compareStart,
  'bring-up': () => compareBringUp(1000),
  change: compareChange,
  passes: comparePasses,
  // Delays differ too much between runs: three rounds of a few milliseconds each, on cores that all
  // hosts share.
  'control-plane': async () => (await compareGrowth(1000)).filter(({ unit }) => unit !== 'ms'),
  join: compareJoin,
};

const usage = `usage: scripts/bench all|${Object.keys(subjects).join('|')}… [--json FILE]
       scripts/bench failover|health|names|paths|proxies|relay|revoke|routers|rules [--rounds N]
       scripts/bench offline [--rounds N] [--hosts N]
       scripts/bench health --churn MINUTES [--replicas]
       scripts/bench check|record [--help]
       scripts/bench push [--help]

Measures all subjects, or those named, each against what a user would have instead, and prints a table. A ratio is our median by the baseline's.
"record" adds figures to the history in docs/performance.md. "check" fails where a figure is worse than the last recorded one.
"relay" cuts the upstream of the relay 50 times, or N times, under a TCP and an SSH session of two hosts without endpoints.
"names" queries the daemon of a network of 10,000 peers, joins hosts and kills connectors 5 times, or N times.
"paths" tries pairs of hosts behind NAT, then switches one pair to its direct path and back 20 times, or N times.
"routers" moves the connector in service 20 times, or N times, with keepalived and BIRD in its LAN. "spread" simulates 1,000 hosts.
"rules" takes the rules of running flows away 100 times, or N times. It measures a connector with 1,000 rules, and the control plane
with 10,000 peers that wait.
"revoke" removes a peer 20 times, or N times, in networks of 2, 3 and 100.
"failover" has the connector in service die 20 times, or N times: of each kind, and at each moment. Then laptops come back from sleep,
and their link comes back, with a preferred standby that never answered.
"health" has it die until a webhook receives the event, 32 times or N times; with --churn it counts alarms without a cause
while the map changes and the control plane is restarted; with --replicas of two processes on PostgreSQL.
"offline" has a host lose power, cable, processes or network, 10 times each or N times, in networks of 2, 3 and 1,000 hosts, or of
--hosts alone.
"proxies" has hosts wait behind the proxies of Debian, TLS and PgBouncer: their requests while idle, and the time of a change until each has
it, 50 times or N times.
BENCH_NETWORKS=N has rules send packets through the filters of N generated networks instead of 10,000, and 500 N packets while rules change.
BENCH_MINUTES=N has idle, proxies and reports go on for N minutes instead of 10, and churn instead of 60.
`;

process.exitCode = await main(process.argv.slice(2));

async function main(argv: string[]): Promise<number> {
  if (argv[0] === 'push') return benchPush(argv.slice(1));
  if (argv[0] === 'check' || argv[0] === 'record') {
    const write = (text: string) => process.stdout.write(text);
    const each = { ...subjects, ...quickSubjects };
    return benchFigures(argv, { subjects: each, quick: Object.keys(quickSubjects), folder: root, write });
  }
  const options = {
    json: { type: 'string' },
    rounds: { type: 'string' },
    churn: { type: 'string' },
    hosts: { type: 'string' },
    replicas: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  } as const;
  const { values, positionals } = parseArgs({ args: argv, options, allowPositionals: true });
  const names = positionals.join() === 'all' ? Object.keys(subjects) : positionals;
  const [rounds, churn, hosts] = [values.rounds, values.churn, values.hosts].map((text) =>
    text === undefined ? undefined : Number(text),
  );
  const hasWrongRounds =
    rounds !== undefined &&
    (!/^(failover|health|names|offline|paths|proxies|relay|revoke|routers|rules)$/.test(names.join()) ||
      !(rounds >= 1));
  const hasWrongChurn = churn !== undefined && (names.join() !== 'health' || rounds !== undefined || !(churn > 0));
  const isChurn = churn !== undefined;
  const measureChurn = () => compareFalseAlarms(churn ?? 0, values.replicas);
  const hasWrongHosts = hosts !== undefined && (names.join() !== 'offline' || !(Number.isInteger(hosts) && hosts >= 2));
  const measureHosts = (rounds?: number) => compareDeadHosts(rounds, hosts === undefined ? undefined : [hosts]);
  const chosen = names.flatMap(
    (name) => (isChurn ? measureChurn : name === 'offline' ? measureHosts : subjects[name]) ?? [],
  );
  if (
    values.help ||
    names.length === 0 ||
    chosen.length < names.length ||
    hasWrongRounds ||
    hasWrongChurn ||
    hasWrongHosts ||
    (values.replicas && !isChurn)
  ) {
    process.stderr.write(usage);
    return values.help ? 0 : 2;
  }
  try {
    minutesOf(1);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    return 2;
  }
  const results = [];
  process.stdout.write(`| ${heading.join(' | ')} |\n|${' --- |'.repeat(heading.length)}\n`);
  for (const measure of chosen) {
    for (const comparison of await measure(rounds)) {
      const result = conclude(comparison);
      results.push(result);
      process.stdout.write(`| ${cellsOf(result).join(' | ')} |\n`);
    }
  }
  if (values.json !== undefined) {
    const machine = { cpus: cpus().length, model: cpus()[0]?.model ?? '', node: process.version };
    writeFileSync(values.json, `${JSON.stringify({ machine, results }, null, 2)}\n`);
  }
  return 0;
}
