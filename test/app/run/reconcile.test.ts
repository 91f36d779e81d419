import { describe, expect, it } from 'vitest';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { DriftDamper } from '../../../src/app/run/listeners/drift-damper.ts';
import { reconcile } from '../../../src/app/run/reconcile.ts';
import { RulesNotLoaded } from '../../../src/core/errors/index.ts';
import type { Change } from '../../../src/core/reconcile/change.ts';
import { bare, dialled, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { serving } from '../serving.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith } from '../simulated-service.ts';

const connectors = [2, 3].map((number) => peer(number, { type: 'connector', endpoint: dialled(number) }));
const joined = joinedTo(mapAt('"1"', connectors));

/** A host, and passes over its network with what was counted of them. */
async function start(state = joined) {
  const simulated = await SimulatedHost.with(state);
  const outcomes: string[] = [];
  const counted: { changes: readonly Change[]; isDrift: boolean }[] = [];
  const meter = {
    ...simulated.tools.meter,
    passed: (_: string, outcome: string) => void outcomes.push(outcome),
    changed: (_: string, changes: readonly Change[], isDrift: boolean) => void counted.push({ changes, isDrift }),
  };
  const tools = { ...simulated.tools, meter };
  const damper = new DriftDamper(tools, 'cpn0');
  const pass = async (update = noUpdate) => {
    const context = { tools, link: 'cpn0', confirmMs: 1, damper };
    const result = await reconcile(context, update, new AbortController().signal);
    if (result?.pass) await damper.onPass(result.pass);
    return result;
  };
  return { simulated, pass, outcomes, counted };
}

describe('a pass', () => {
  it('returns what it did, and counts it', async () => {
    const { simulated, pass, outcomes, counted } = await start();
    expect(await pass()).toMatchObject({ pass: { isDrift: true }, error: null, requeueAfter: null });
    expect(await pass()).toMatchObject({ pass: { changes: [] }, error: null, requeueAfter: null });
    const next = mapAt('"2"', connectors.slice(1));
    simulated.service.mapReplies = [answerWith(next)];
    await pass({ ...noUpdate, map: next });
    expect(outcomes).toEqual(['repaired', 'steady', 'changed']);
    expect(counted.map(({ changes, isDrift }) => [changes.length > 0, isDrift])).toEqual([
      [true, true],
      [false, true],
      [true, false],
    ]);
  });

  it('over a network that was taken down changes nothing', async () => {
    const { pass, outcomes } = await start({ ...joined, enabled: false });
    expect(await pass()).toMatchObject({ pass: { evaluation: null, changes: [] }, error: null });
    expect(outcomes).toEqual(['steady']);
  });

  it('over a network that was left returns nothing to do', async () => {
    const { simulated, pass } = await start();
    await simulated.tools.store.forget('cpn0', []);
    expect(await pass()).toBeNull();
  });

  it('returns its error, and counts the failure', async () => {
    const { simulated, pass, outcomes } = await start();
    simulated.refusesStep = () => true;
    expect(await pass()).toMatchObject({ pass: null, error: { name: 'CommandFailed' }, requeueAfter: null });
    expect(outcomes).toEqual(['failed']);
  });

  it('returns when a postponed repair is due', async () => {
    const { simulated, pass, outcomes } = await start();
    let result = await pass();
    for (let repair = 0; repair < 10 && result?.requeueAfter === null; repair += 1) {
      simulated.actual = { ...bare, firewall: simulated.actual.firewall };
      result = await pass();
    }
    expect(result).toMatchObject({ pass: { changes: [] }, error: null, requeueAfter: expect.any(Number) });
    expect(outcomes.at(-1)).toBe('postponed');
    simulated.seconds += (result?.requeueAfter ?? 0) / 1000;
    expect(await pass()).toMatchObject({ requeueAfter: null });
    expect(outcomes.at(-1)).toBe('repaired');
  });

  it('whose packet rules do not load fails in part', async () => {
    const { simulated, pass, outcomes } = await start(serving());
    simulated.refusesStep = ({ do: step }) => step === 'set-firewall';
    const result = await pass();
    expect(result?.error).toBeInstanceOf(RulesNotLoaded);
    expect(result?.pass?.changes.map(({ kind }) => kind)).not.toContain('firewall');
    expect(outcomes).toEqual(['repaired']);
  });
});
