import { describe, expect, it } from 'vitest';
import { CommandFailed } from '../../../../src/core/errors/index.ts';
import { readForeignDrops } from '../../../../src/host/linux/nft/foreign-rules.ts';
import { OutputCache } from '../../../../src/host/process/output-cache.ts';
import type { Run } from '../../../../src/host/process/run.ts';
import { prefix } from '../../../core/samples.ts';

const place = { family: 'inet', table: 't' };
const source = (set: string) => ({
  match: { op: '==', left: { payload: { protocol: 'ip', field: 'saddr' } }, right: `@${set}` },
});

/** A table that drops what none of these sets accepts. */
function ruleset(sets: readonly string[], table = 't'): string {
  const own = { ...place, table };
  return JSON.stringify({
    nftables: [
      { table: { family: 'inet', name: table } },
      { chain: { ...own, name: 'f', type: 'filter', hook: 'forward', prio: 0, policy: 'drop' } },
      ...sets.map((name) => ({ set: { ...own, name, type: 'ipv4_addr' } })),
      ...sets.map((name) => ({ rule: { ...own, chain: 'f', expr: [source(name), { accept: null }] } })),
    ],
  });
}

const listed = (name: string) =>
  JSON.stringify({ nftables: [{ set: { ...place, name, elem: [{ prefix: { addr: '10.77.0.0', len: 24 } }] } }] });
const paths = {
  forward: [
    { iif: 'cpn0', oif: 'eth1', from: prefix('10.77.0.0/24'), to: prefix('192.168.50.0/24'), state: 'new' as const },
  ],
  inbound: [],
};

function prepare(listing: string, sets: Readonly<Record<string, string | Error>>) {
  const read: string[] = [];
  const run: Run = async (tool, args, options) => {
    if (tool !== 'nft') throw new Error(`${tool} is not needed`);
    if (args.at(-1) === 'ruleset') return listing;
    const name = args.at(-1) ?? '';
    read.push(name);
    expect([options?.maxBytes, (options?.deadlineMs ?? 0) <= 500]).toEqual([1024 * 1024, true]);
    const answer = sets[name] ?? listed(name);
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return { read, find: () => readForeignDrops(run, new OutputCache(), 'cpn0', paths) };
}

describe('a set on which a verdict depends', () => {
  it('is read, and decides', async () => {
    const { read, find } = prepare(ruleset(['bad']), { bad: listed('bad') });
    expect(await find()).toEqual({ forward: [], inbound: null });
    expect(read).toEqual(['bad']);
  });

  it('that cannot be read stays unread, and is tried once', async () => {
    const failure = new CommandFailed('nft', null, 'it printed more than 1 MiB');
    const { read, find } = prepare(ruleset(['bad']), { bad: failure });
    expect((await find()).unread?.forward).toMatchObject([{ name: 'bad' }]);
    expect(read).toEqual(['bad']);
  });

  it('is read where it decides whether packets reach the rule of another one, and so on', async () => {
    const chains = ['a', 'b', 'c'].map((name, index, all) => {
      const next = all[index + 1];
      const verdict = next === undefined ? { accept: null } : { jump: { target: next } };
      return [
        { set: { ...place, name, type: 'ipv4_addr' } },
        { chain: { ...place, name } },
        { rule: { ...place, chain: name, expr: [source(name), verdict] } },
      ];
    });
    const base = { ...place, name: 'f', type: 'filter', hook: 'forward', prio: 0, policy: 'drop' };
    const objects = [
      { table: { family: 'inet', name: 't' } },
      { chain: base },
      { rule: { ...place, chain: 'f', expr: [{ jump: { target: 'a' } }] } },
    ];
    const { read, find } = prepare(JSON.stringify({ nftables: [...objects, ...chains.flat()] }), {});
    expect(await find()).toEqual({ forward: [], inbound: null });
    expect(read).toEqual(['a', 'b', 'c']);
  });

  it('a bug is not taken for one that cannot be read', async () => {
    await expect(prepare(ruleset(['bad']), { bad: new TypeError('a bug') }).find()).rejects.toThrow('a bug');
  });

  it.each([
    ['a set', ['x;flush ruleset'], 't'],
    ['a table', ['bad'], 't t'],
  ])('is not read where its name, or that of its table, would be words of nft: %s', async (_, sets, table) => {
    const { read, find } = prepare(ruleset(sets, table), {});
    expect((await find()).unread?.forward).toHaveLength(1);
    expect(read).toEqual([]);
  });
});
