import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { createMetrics } from '../../src/control-plane/http/metrics.ts';
import { ChangeNotifier } from '../../src/control-plane/push/change-notifier.ts';
import { openStore } from '../../src/control-plane/store/sqlite/store.ts';
import type { Certificate } from '../../src/core/tls/certificate.ts';
import { type Family, readExposition } from '../cli/daemon/metrics/exposition.ts';
import { expose, watchedDesk } from '../cli/daemon/metrics/watched.ts';
import { memory } from '../lab/memory.ts';

const folder = join(import.meta.dirname, '../../packaging/monitoring');
const read = (name: string) => readFileSync(join(folder, name), 'utf8');

/** What others tell, and Prometheus itself. */
const foreign = ['up', 'node_textfile_mtime_seconds'];
/** The labels that Prometheus adds. */
const added = ['instance', 'job'];

/** All metrics of the daemon and of the control plane. */
async function readFamilies(): Promise<ReadonlyMap<string, Family>> {
  const data = mkdtempSync(join(memory, 'cpn-metrics-'));
  const { db, close } = await openStore(data);
  const served = { file: 'cert.pem', chain: [{ validTo: 1 } as Certificate], isIssuerTrusted: true };
  const readTime = async () => new Date();
  const plane = createMetrics({ db, readTime, notifier: new ChangeNotifier() }, () => served);
  // Without what a library tells of the process.
  const ofPlane = (await plane.format()).replace(/^(?!(# \w+ )?cpn_).*\n/gm, '');
  await close();
  rmSync(data, { recursive: true });
  return new Map([...readExposition(ofPlane), ...readExposition(await expose(await watchedDesk()))]);
}

let families: ReadonlyMap<string, Family>;
beforeEach(async () => {
  families ??= await readFamilies();
});

/** The labels of a metric, with those that Prometheus adds. */
function labelsOf(name: string): string[] {
  const family = families.get(name) ?? families.get(name.replace(/_(bucket|sum|count)$/, ''));
  return [...added, ...(family?.samples.flatMap(({ labels }) => Object.keys(labels)) ?? [])];
}

/** The labels of a text that its expression does not leave: `{{ $labels.peer }}` of a rule, `{{peer}}` of a legend. */
function findMissing(text: string, expression: string): string[] {
  const [, kept] = /\bby \(([^)]*)\)/.exec(expression) ?? [];
  const [, first = ''] = /\b((?:cpn|process|node|nodejs)_\w+|up\b)/.exec(expression) ?? [];
  const labels = kept === undefined ? labelsOf(first) : kept.split(', ');
  const named = [...text.matchAll(/\{\{ ?(?:\$labels\.)?(\w+) ?\}\}/g)].map(([, label = '']) => label);
  return named.filter((label) => !labels.includes(label)).map((label) => `${expression} leaves no ${label}`);
}

/** The faults of an expression: unknown metrics, and unclosed brackets. */
function findFaults(expression: string): string[] {
  const faults: string[] = [];
  for (const [open, close] of ['()', '{}', '[]'].map((pair) => [...pair] as [string, string])) {
    if (expression.split(open).length !== expression.split(close).length) faults.push(`${open} is not closed`);
  }
  const named = [...expression.matchAll(/\b((?:cpn|process|node|nodejs)_\w+|up\b)(?:\{([^}]*)\})?/g)];
  for (const [, name = ''] of expression.matchAll(/\b(?:rate|increase)\((\w+)/g)) {
    const type = families.get(name.replace(/_bucket$/, ''))?.type;
    if (!['counter', 'histogram'].includes(type ?? 'counter')) faults.push(`${name} never only grows`);
  }
  for (const [, list = ''] of expression.matchAll(/\b(?:by|on|ignoring|without) \(([^)]*)\)/g)) {
    const labels = new Set(named.flatMap(([, name = '']) => labelsOf(name)));
    for (const label of list.split(', ')) if (!labels.has(label)) faults.push(`nothing has ${label}`);
  }
  if (named.length === 0) faults.push('names no metric');
  for (const [, name = '', matchers = ''] of named) {
    if (foreign.includes(name)) continue;
    const part = /^(.*)_(bucket|sum|count)$/.exec(name);
    const family = families.get(name) ?? (part && families.get(part[1] ?? ''));
    if (!family) {
      faults.push(`${name} is no metric`);
      continue;
    }
    for (const [, label = '', operator, value = ''] of matchers.matchAll(/(\w+)(=~|!~|!=|=)"([^"]*)"/g)) {
      const values = family.samples.map(({ labels }) => labels[label]);
      if (!added.includes(label) && values.every((each) => each === undefined)) faults.push(`${name} has no ${label}`);
      if (operator === '=' && !added.includes(label) && !values.includes(value)) {
        faults.push(`${name} has no ${label} ${value}`);
      }
    }
  }
  return faults;
}

describe('the alert rules', () => {
  /** The lines of a rule in their order; there are no others. */
  const rule =
    / {6}- alert: (Cpn[A-Za-z]+)\n {8}expr: (.+)\n(?: {8}for: \d+m\n)? {8}labels:\n {10}severity: (?:critical|warning)\n {8}annotations:\n {10}summary: "([^"\n]+)"\n {10}description: "([^"\n]+)"\n/g;

  it('hold nothing that is no rule, and no name twice', () => {
    const text = read('alerts.yml').replace(/^#.*\n/gm, '');
    expect(text.replace(rule, '')).toBe(
      'groups:\n  - name: cpn\n    rules:\n  - name: cpn-control-plane\n    rules:\n',
    );
    const names = [...text.matchAll(rule)].map(([, name]) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(names.length).toBeGreaterThan(10);
  });

  it('name only metrics, labels and states that there are', async () => {
    const rules = [...read('alerts.yml').matchAll(rule)];
    const faults = rules.map(([, name, expression = '', summary = '', description = '']) => {
      const missing = findMissing(`${summary} ${description}`, expression);
      return [name, [...findFaults(expression), ...missing]] as const;
    });
    expect(faults.filter(([, found]) => found.length > 0)).toEqual([]);
  });
});

it('the dashboard names only metrics, labels and states that there are, and no panel twice', async () => {
  const { panels, templating } = JSON.parse(read('dashboard.json')) as {
    panels: { id: number; title: string; targets: { expr: string; legendFormat: string }[] }[];
    templating: { list: { name: string; query: string | { query: string } }[] };
  };
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const asked = panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const));
  const targets = panels.flatMap((panel) => panel.targets);
  expect(targets.flatMap(({ expr, legendFormat }) => findMissing(legendFormat, expr))).toEqual([]);
  // A number of one state says which, and the two directions are not each other's.
  for (const { expr, legendFormat } of targets) {
    const [, state = legendFormat] = /state="(\w+)"/.exec(expr) ?? [];
    expect([expr, legendFormat]).toEqual([expr, state]);
    const direction = /(receive|transmit)_bytes/.exec(expr)?.[1];
    if (direction !== undefined) expect(legendFormat).toContain({ receive: 'received', transmit: 'sent' }[direction]);
  }
  const chosen = templating.list.flatMap(({ name, query }) =>
    typeof query === 'string' ? [] : [[name, query.query] as const],
  );
  expect(asked.length).toBeGreaterThanOrEqual(panels.length);
  const faults = [...asked, ...chosen].map(([title, expression]) => [title, findFaults(expression)] as const);
  expect(faults.filter(([, found]) => found.length > 0)).toEqual([]);
});

it('README and docs name only metrics and labels that there are', async () => {
  const root = join(folder, '../..');
  const pages = [
    'README.md',
    ...readdirSync(join(root, 'docs'))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `docs/${name}`),
  ];
  const named = pages.flatMap((page) =>
    // A value that a page leaves open matches any.
    [...readFileSync(join(root, page), 'utf8').matchAll(/\bcpn_[a-z]+(?:(?:_[a-z]+)+(?:\{[^}]*\})?|\{[^}]*\})/g)].map(
      ([name]) => [page, name.replaceAll('="…"', '=~".*"')] as const,
    ),
  );
  expect(named.filter(([, name]) => name.includes('{')).length).toBeGreaterThan(1);
  expect(named.flatMap(([page, name]) => findFaults(name).map((fault) => [page, fault]))).toEqual([]);
});

it('such a check finds a metric, a label and a state that there is not', async () => {
  expect(findFaults('cpn_network_staet == 1')).toEqual(['cpn_network_staet is no metric']);
  expect(findFaults('cpn_network_state{stat="up"}')).toEqual([
    'cpn_network_state has no stat',
    'cpn_network_state has no stat up',
  ]);
  expect(findFaults('sum(cpn_network_state{state="upp"})')).toEqual(['cpn_network_state has no state upp']);
  expect(findFaults('sum by (nterface) (increase(cpn_drift_changes[1h]))')).toEqual([
    'cpn_drift_changes never only grows',
    'nothing has nterface',
  ]);
  const text = '{{ $labels.peer }} of {{interface}}';
  expect(findMissing(text, 'sum by (interface) (cpn_peer_state)')).toHaveLength(1);
  expect(findMissing(text, 'cpn_drift_changes > 0')).toHaveLength(1);
  expect(findMissing(text, 'cpn_peer_state == 1')).toEqual([]);
  expect(findFaults('sum(1')).toEqual(['( is not closed', 'names no metric']);
});
