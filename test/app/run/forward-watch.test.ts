import { describe, expect, it } from 'vitest';
import { ForwardWatch } from '../../../src/app/run/forward-watch.ts';
import { readStatus } from '../../../src/app/status.ts';
import { survey } from '../../../src/app/survey.ts';
import { CommandFailed } from '../../../src/core/errors.ts';
import type { ForwardDrop } from '../../../src/core/forward/find-drops.ts';
import type { ForwardPath } from '../../../src/core/forward/path.ts';
import { network, peer, prefix } from '../../core/samples.ts';
import { Desk, joinedTo } from '../desk.ts';

const enrollment = { idempotencyKey: 'x', tokenHash: 'y', name: 'peer-1', type: 'connector', endpoint: null } as const;
const path: ForwardPath = {
  iif: 'cpn0',
  oif: null,
  from: prefix('10.77.0.0/24'),
  to: prefix('192.168.50.0/24'),
  state: 'new',
};
const by = (table: string): ForwardDrop => ({
  family: 'ip',
  table,
  chain: 'forward',
  reason: 'policy drop of chain forward',
  author: null,
  remedy: 'let cpn0 through there',
  paths: [path],
});
const words = (table: string) =>
  `packets to 192.168.50.0/24 do not get through nft table ip ${table} (policy drop of chain forward); let cpn0 through there`;

/** A connector, or a host that is none, with a watch that looks every 30 s; `look` says what came of it. */
async function watchOver(type: 'connector' | 'origin' = 'connector') {
  const desk = await Desk.with(joinedTo(network([peer(1, { type })]), { enrollment: { ...enrollment, type } }));
  const watch = new ForwardWatch(desk.tools, 'cpn0', 30);
  const look = async () => {
    const before = desk.logged.length;
    await watch.note(await survey(desk.tools, await desk.state()));
    return desk.logged.slice(before).map(({ level, message }) => `${level}: ${message}`);
  };
  return { desk, watch, look };
}

const begins = 'warn: packets to be forwarded are dropped';
const ends = 'info: nobody drops packets to be forwarded any more';

describe('what somebody else drops at a connector', () => {
  it('is logged when it begins, when it becomes another thing, and when it ends', async () => {
    const { desk, watch, look } = await watchOver();
    expect(await look()).toEqual([]);
    watch.expect();
    desk.drops = [by('a')];
    expect(await look()).toEqual([begins]);
    expect(desk.logged.at(-1)?.facts).toMatchObject({ interface: 'cpn0', error: words('a') });
    watch.expect();
    expect(await look()).toEqual([]);
    desk.drops = [by('a'), by('b')];
    watch.expect();
    expect(await look()).toEqual([begins]);
    await watch.note(null);
    expect(desk.logged.at(-1)?.message).toBe('nobody drops packets to be forwarded any more');
  });

  it('is looked for once an interval, unless something changed', async () => {
    const { desk, watch, look } = await watchOver();
    await look();
    desk.drops = [by('a')];
    desk.seconds += 20;
    expect(await look()).toEqual([]);
    desk.seconds += 5;
    expect(await look()).toEqual([begins]);
    desk.drops = [];
    expect(await look()).toEqual([]);
    watch.expect();
    expect(await look()).toEqual([ends]);
  });

  it('does not matter on a host that forwards nothing', async () => {
    const { desk, look } = await watchOver('origin');
    desk.drops = [by('a')];
    expect(await look()).toEqual([]);
  });

  it('is unknown where the rules cannot be read, which is said once and hides nothing else', async () => {
    const { desk, watch, look } = await watchOver();
    desk.drops = [by('a')];
    await look();
    const { forwardDrops } = desk.tools.host;
    desk.tools.host.forwardDrops = async () => {
      throw new CommandFailed('nft', 1, 'no');
    };
    watch.expect();
    expect(await look()).toEqual(['warn: the packet rules cannot be read']);
    watch.expect();
    expect(await look()).toEqual([]);
    desk.tools.host.forwardDrops = forwardDrops;
    watch.expect();
    expect(await look()).toEqual(['info: the packet rules can be read again']);
  });
});

describe('the status of a connector', () => {
  it('is degraded while somebody drops what it forwards, and says so', async () => {
    const { desk } = await watchOver();
    const { steps } = await survey(desk.tools, await desk.state());
    for (const step of steps) await desk.tools.host.apply(step);
    const before = (await readStatus(desk.tools))[0];
    desk.drops = [by('a')];
    const [after] = await readStatus(desk.tools);
    expect(after).toMatchObject({ state: 'degraded', warnings: [...(before?.warnings ?? []), words('a')] });
    desk.tools.host.forwardDrops = async () => {
      throw new CommandFailed('nft', 1, 'no');
    };
    expect((await readStatus(desk.tools))[0]?.warnings.at(-1)).toMatch(/^whether packets .* cannot be told: /);
  });
});
