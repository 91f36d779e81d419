import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createMetrics } from '../../src/control-plane/http/metrics.ts';
import { ChangeNotifier } from '../../src/control-plane/push/change-notifier.ts';
import type { Context } from '../../src/control-plane/service/context.ts';
import { type Family, readExposition } from '../cli/daemon/metrics/exposition.ts';
import { expose, watchedDesk } from '../cli/daemon/metrics/watched.ts';

const folder = join(import.meta.dirname, '../../packaging/monitoring');
const read = (name: string) => readFileSync(join(folder, name), 'utf8');

/** What others tell, and Prometheus itself. */
const foreign = ['up', 'node_textfile_mtime_seconds'];
/** The labels that Prometheus adds. */
const added = ['instance', 'job'];

/** All metrics of the daemon and of the control plane. */
async function readFamilies(): Promise<ReadonlyMap<string, Family>> {
  const plane = createMetrics({ notifier: new ChangeNotifier() } as unknown as Context, () => null);
  // Without what a library tells of the process.
  const ofPlane = (await plane.format()).replace(/^(?!(# \w+ )?cpn_).*\n/gm, '');
  return new Map([...readExposition(ofPlane), ...readExposition(await expose(await watchedDesk()))]);
}

/** The faults of an expression: unknown metrics, and unclosed brackets. */
function findFaults(expression: string, families: ReadonlyMap<string, Family>): string[] {
  const faults: string[] = [];
  for (const [open, close] of ['()', '{}', '[]'].map((pair) => [...pair] as [string, string])) {
    if (expression.split(open).length !== expression.split(close).length) faults.push(`${open} is not closed`);
  }
  const named = [...expression.matchAll(/\b((?:cpn|process|node|nodejs)_\w+|up\b)(?:\{([^}]*)\})?/g)];
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
    const families = await readFamilies();
    const rules = [...read('alerts.yml').matchAll(rule)];
    const faults = rules.map(([, name, expression = '']) => [name, findFaults(expression, families)] as const);
    expect(faults.filter(([, found]) => found.length > 0)).toEqual([]);
  });
});

it('the dashboard names only metrics, labels and states that there are, and no panel twice', async () => {
  const families = await readFamilies();
  const { panels, templating } = JSON.parse(read('dashboard.json')) as {
    panels: { id: number; title: string; targets: { expr: string }[] }[];
    templating: { list: { name: string; query: string | { query: string } }[] };
  };
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const asked = panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const));
  const chosen = templating.list.flatMap(({ name, query }) =>
    typeof query === 'string' ? [] : [[name, query.query] as const],
  );
  expect(asked.length).toBeGreaterThanOrEqual(panels.length);
  const faults = [...asked, ...chosen].map(([title, expression]) => [title, findFaults(expression, families)] as const);
  expect(faults.filter(([, found]) => found.length > 0)).toEqual([]);
});

it('README and docs name only metrics that there are', async () => {
  const families = await readFamilies();
  const root = join(folder, '../..');
  const pages = [
    'README.md',
    ...readdirSync(join(root, 'docs'))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `docs/${name}`),
  ];
  const named = pages.flatMap((page) =>
    [...readFileSync(join(root, page), 'utf8').matchAll(/\bcpn_[a-z]+(?:_[a-z]+)+/g)].map(
      ([name]) => [page, name] as const,
    ),
  );
  expect(named).not.toEqual([]);
  expect(named.flatMap(([page, name]) => findFaults(name, families).map((fault) => [page, fault]))).toEqual([]);
});

it('such a check finds a metric, a label and a state that there is not', async () => {
  const families = await readFamilies();
  expect(findFaults('cpn_network_staet == 1', families)).toEqual(['cpn_network_staet is no metric']);
  expect(findFaults('cpn_network_state{stat="up"}', families)).toEqual([
    'cpn_network_state has no stat',
    'cpn_network_state has no stat up',
  ]);
  expect(findFaults('sum(cpn_network_state{state="upp"})', families)).toEqual(['cpn_network_state has no state upp']);
  expect(findFaults('sum(1', families)).toEqual(['( is not closed', 'names no metric']);
});
