/** A metric with its samples, as Prometheus reads them. */
export interface Family {
  readonly type: string;
  readonly help: string;
  readonly samples: readonly Sample[];
}

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/**
 * Reads metrics as strictly as `promtool check metrics`, and by the same conventions: throws for a line that is out of place, a
 * series that is there twice, and a name that is not as names are to be.
 */
export function readExposition(text: string): ReadonlyMap<string, Family> {
  if (!text.endsWith('\n')) throw new Error('the last line has no end');
  const families = new Map<string, { type: string; help: string; samples: Sample[] }>();
  const series = new Set<string>();
  let current = '';
  for (const line of text.split('\n').filter((each) => each !== '')) {
    const [, keyword, about = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? [];
    if (keyword === 'HELP') {
      if (families.has(about)) throw new Error(`${about} is there twice`);
      current = about;
      families.set(about, { type: '', help: rest, samples: [] });
      continue;
    }
    const family = families.get(current);
    if (family === undefined) throw new Error(`no metric has this sample: ${line}`);
    if (keyword === 'TYPE') {
      if (about !== current || family.type !== '') throw new Error(`out of place: ${line}`);
      family.type = rest;
      judgeName(current, rest);
      continue;
    }
    const sample = readSample(line);
    const key = JSON.stringify([sample.name, Object.entries(sample.labels).toSorted()]);
    if (series.has(key)) throw new Error(`there twice: ${line}`);
    series.add(key);
    const suffix = sample.name.slice(current.length);
    const suffixes = family.type === 'histogram' ? ['_bucket', '_sum', '_count'] : [''];
    if (!sample.name.startsWith(current) || !suffixes.includes(suffix)) throw new Error(`not of ${current}: ${line}`);
    family.samples.push(sample);
  }
  return families;
}

function judgeName(name: string, type: string): void {
  const complain = (what: string) => {
    throw new Error(`${name} ${what}`);
  };
  if (!/^[a-z][a-z0-9_]*$/.test(name)) complain('is not in lower case with underscores');
  if (!['counter', 'gauge', 'histogram'].includes(type)) complain(`is of no type: ${type}`);
  if (name.endsWith('_total') !== (type === 'counter')) complain('ends in _total though it is no counter, or should');
  if (/_(count|sum|bucket)$/.test(name)) complain('ends as only a part of a histogram does');
  if (/_(gauge|counter|histogram)/.test(name)) complain('says its type');
  if (/_(ms|milliseconds|minutes|hours|days|age|kb|mb|kib|mib|bits|percent)(_|$)/.test(name))
    complain('has no base unit');
}

function readSample(line: string): Sample {
  const [, name = '', inside = '', value = ''] = /^([a-z][a-z0-9_]*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
  const pairs = [...inside.matchAll(/([a-z][a-z0-9_]*)="((?:[^"\\]|\\["\\n])*)"(?:,|$)/g)];
  const isWhole = pairs.map(([all]) => all).join('') === inside;
  const number = value === '+Inf' ? Number.POSITIVE_INFINITY : Number(value);
  if (name === '' || !isWhole || Number.isNaN(number)) throw new Error(`not a sample: ${line}`);
  return { name, labels: Object.fromEntries(pairs.map(([, label, text]) => [label, text])), value: number };
}
