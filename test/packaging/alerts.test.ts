import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const rules = [
  ...read('packaging/monitoring/alerts.yml').matchAll(/- alert: (\w+)\n {8}expr: (.+)\n(?: {8}for: (\d+)m\n)?/g),
].map(([, name = '', expression = '', minutes = '0']) => ({ name, expression, minutes: Number(minutes) }));

const now = 1_900_000_000;
const [minute, day] = [60, 86_400];
/** The value of each selector, on a host where all is well and on one where nothing is. */
const values: Readonly<Record<string, readonly [good: number, bad: number]>> = {
  'up{job="cpn"}': [1, 0],
  'node_textfile_mtime_seconds{file=~".*cpn.*"}': [now - 45, now - 5 * minute],
  cpn_network_unreadable: [0, 1],
  'cpn_network_state{state="down"}': [0, 1],
  'cpn_network_state{state="degraded"}': [0, 1],
  'cpn_route_state{state="missing"}': [0, 1],
  'cpn_peer_state{state="stale"}': [0, 1],
  'cpn_failovers_total[1h]': [1, 10],
  cpn_drift_changes: [0, 1],
  'cpn_drift_repaired_total[1h]': [2, 60],
  'cpn_passes_total{outcome="failed"}[15m]': [1, 10],
  cpn_sync_refused: [0, 1],
  cpn_sync_last_success_timestamp_seconds: [now - 5 * minute, now - 60 * minute],
  'cpn_sync_mode{mode="local"}': [0, 0],
  cpn_pins_changed: [0, 1],
  'cpn_webhook_failed_attempts_total[2h]': [0, 5],
  cpn_webhook_oldest_event_seconds: [30, 60 * minute],
  cpn_tls_certificate_expires_timestamp_seconds: [now + 60 * day, now + 7 * day],
};

/** Whether a rule fires with these values: comparisons of sums and differences, joined by "and on" and "unless on". */
function fires(expression: string, sampleOf: (selector: string) => number): boolean {
  const [, rest, joint, other] = /^(.+?) (and|unless) on \([a-z, ]+\) (.+)$/.exec(expression) ?? [];
  if (rest !== undefined && other !== undefined)
    return fires(rest, sampleOf) && fires(other, sampleOf) === (joint === 'and');
  const [, left = '', operator = '', right = ''] = /^(.+?) (==|>|<) (.+)$/.exec(expression) ?? [];
  const amount = (text: string): number => {
    const bare = text.replace(/^sum by \([a-z, ]+\) \((.+)\)$/, '$1').replace(/^increase\((.+)\)$/, '$1');
    const difference = bare.split(' - ');
    if (difference.length === 2) return amount(difference[0] ?? '') - amount(difference[1] ?? '');
    const product = bare.split(' * ');
    if (product.length === 2) return amount(product[0] ?? '') * amount(product[1] ?? '');
    return bare === 'time()' ? now : /^\d+$/.test(bare) ? Number(bare) : sampleOf(bare);
  };
  const [one, two] = [amount(left), amount(right)];
  return operator === '==' ? one === two : operator === '>' ? one > two : one < two;
}

const valueIn = (column: 0 | 1) => (selector: string) => {
  const known = values[selector]?.[column];
  if (known === undefined) throw new Error(`no value for ${selector}`);
  return known;
};

test('the expressions are read as Prometheus does', () => {
  const sampleOf = (selector: string) => ({ a: 5, b: 0 })[selector] ?? Number.NaN;
  expect(fires('a > 4', sampleOf)).toBe(true);
  expect(fires('time() - a > 4', sampleOf)).toBe(true);
  expect(fires('a - time() < 14 * 86400', sampleOf)).toBe(true);
  expect(fires('a > 4 unless on (instance) b == 0', sampleOf)).toBe(false);
  expect(fires('a > 4 and on (instance, interface) b == 1', sampleOf)).toBe(false);
});

test.each(rules)('$name fires where it is needed, and not where all is well', ({ expression }) => {
  expect(fires(expression, valueIn(0))).toBe(false);
  expect(fires(expression, valueIn(1))).toBe(true);
});

test('a map that is provided on the host itself is never too old', () => {
  const rule = rules.find(({ name }) => name === 'CpnSyncOld');
  const sampleOf = (selector: string) => (selector.includes('local') ? 1 : valueIn(1)(selector));
  expect(fires(rule?.expression ?? '', sampleOf)).toBe(false);
});

test('each value is of a rule', () => {
  for (const selector of Object.keys(values))
    expect([selector, rules.some(({ expression }) => expression.includes(selector))]).toEqual([selector, true]);
});

test('a rule of a state that may pass waits for minutes, and one of what was counted does not', () => {
  const isOfCount = (expression: string) =>
    /^(sum|increase).*\[\d+[hm]\]/.test(expression) && !expression.includes(' on ');
  const atOnce = rules.filter(({ name, expression }) => isOfCount(expression) || name === 'CpnPeerClaimsAnotherKey');
  expect(rules.filter(({ minutes }) => minutes === 0)).toEqual(atOnce);
});

test('the bounds are those of the documents and of the program', () => {
  const boundOf = (name: string, pattern: RegExp) =>
    pattern.exec(rules.find((rule) => rule.name === name)?.expression ?? '')?.[1];
  const plane = read('docs/control-plane.md');
  const [, oldest] = /has the age of the oldest: above (\d+), look at the receiver/.exec(plane) ?? [];
  expect(boundOf('CpnWebhookFails', /oldest_event_seconds > (\d+)/)).toBe(oldest);
  const [, days] = /ends within (\d+) days, or a third/.exec(plane) ?? [];
  expect(boundOf('CpnCertificateExpires', /< (\d+) \* 86400/)).toBe(days);
  const [, everyMs] = /everyFile = ([\d_]+)/.exec(read('src/cli/daemon/metrics/publish.ts')) ?? [];
  const written = Number(everyMs?.replaceAll('_', '')) / 1000;
  expect(Number(boundOf('CpnMetricsFileOld', /> (\d+)/))).toBeGreaterThanOrEqual(4 * written);
});
