import { describe, expect, it } from 'vitest';
import { networkChecks } from '../../../src/app/doctor/check-network.ts';
import type { DoctorTools } from '../../../src/app/doctor/examination.ts';
import { findAccessProblems } from '../../../src/app/problems/find-state-problems.ts';
import { evaluateNetwork } from '../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { ProblemListener } from '../../../src/app/run/listeners/problem-listener.ts';
import { readStatus } from '../../../src/app/status/status.ts';
import { CommandFailed } from '../../../src/core/errors/index.ts';
import { withoutTool } from '../../../src/core/forward/own-table.ts';
import type { AccessRules } from '../../../src/core/map/access-rules.ts';
import type { RefusedTraffic } from '../../../src/core/rules/refused.ts';
import { address, dialled, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { passOf } from '../run/pass-of.ts';
import { SimulatedHost } from '../simulated-host.ts';

const refused: RefusedTraffic = {
  packets: { in: 7, out: 2 },
  latest: [{ from: address('10.77.0.2'), to: address('10.77.0.1'), protocol: 'tcp', port: 22, seconds: 3 }],
};
const closed: AccessRules = {
  rules: [
    { name: 'web', from: [{ kind: 'any' }], to: [{ kind: 'any' }], protocol: 'tcp', ports: [{ first: 80, last: 80 }] },
  ],
  requiresEnforcement: false,
};

/** A host that is up in a network with these rules. */
async function start(rules?: AccessRules, prepare: (simulated: SimulatedHost) => void = () => {}) {
  const map = mapAt('"1"', [peer(2, { endpoint: dialled(2) })], { routes: [] });
  const simulated = await SimulatedHost.with(joinedTo(rules ? { ...map, rules } : map));
  simulated.onHandshakeTrigger = () => {};
  prepare(simulated);
  await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 20_000 });
  simulated.refused = refused;
  const status = async () => (await readStatus(simulated.tools))[0] ?? expect.unreachable('there is a network');
  const evaluate = async () => evaluateNetwork(simulated.tools, await simulated.state());
  /** The problems of the status, and the same as findings of `cpn doctor`. */
  const find = async () => {
    const { problems, state } = await status();
    const evaluation = await evaluate();
    const tools = { ...simulated.tools, inspector: { udpPorts: async () => new Set<number>() } };
    const checks = networkChecks.map((check) => check.examine(tools as unknown as DoctorTools, evaluation));
    const findings = (await Promise.all(checks)).flat().filter(({ subject }) => subject === 'forwarding');
    return {
      state,
      texts: problems.map(({ code, severity, text }) => `${severity} ${code}: ${text}`),
      doctor: findings.map(({ verdict, found }) => `${verdict}: ${found}`),
    };
  };
  return { simulated, status, evaluate, find };
}

it('the doctor notes what takes packets away from the rules', async () => {
  const bypass = { family: 'ip', table: 'raw', chain: 'PREROUTING', effect: 'untracks' } as const;
  const { simulated, find } = await start(closed, (each) => {
    each.drops = { forward: [], inbound: null, bypasses: [bypass] };
  });
  expect((await find()).doctor).toContainEqual(
    expect.stringMatching(/^note: nft table ip raw .* may leave packets of the tunnel untracked/),
  );
  simulated.drops = { forward: [], inbound: null, bypasses: [] };
  expect((await find()).doctor).toContain('ok: none was found');
});

describe('the rules in the status', () => {
  it('are open without rules, and nothing is read then', async () => {
    const { simulated, status } = await start();
    simulated.refused = new CommandFailed('nft', 1, 'no');
    expect((await status()).rules).toEqual({ mode: 'open' });
  });

  it('have what the loaded rules refused', async () => {
    const { status, find } = await start(closed);
    expect((await status()).rules).toEqual({ mode: 'closed', count: 1, refused });
    expect(await find()).toMatchObject({ state: 'up', texts: [], doctor: ['ok: is loaded'] });
  });

  it('are there without counts if nft fails', async () => {
    const { simulated, status } = await start(closed);
    simulated.refused = new CommandFailed('nft', 1, 'no');
    expect(await status()).toMatchObject({ state: 'up', rules: { mode: 'closed', count: 1, refused: null } });
  });

  it('of a network that is down are those of its map', async () => {
    const { simulated, status } = await start(closed);
    await simulated.tools.store.write({ ...(await simulated.state()), enabled: false });
    expect(await status()).toMatchObject({ state: 'down', rules: { mode: 'closed', count: 1, refused: null } });
  });
});

describe('a closed network is degraded', () => {
  it('while its packet rules do not load: the tunnel carries nothing', async () => {
    const { find } = await start(closed, (host) => {
      host.refusesStep = (step) => step.do === 'set-firewall';
    });
    const { state, texts } = await find();
    expect(state).toBe('degraded');
    expect(texts).toContainEqual(
      expect.stringMatching(
        /^problem rules-not-loaded: .* do not load: .*; the network is closed, so the tunnel carries nothing until they load$/,
      ),
    );
  });

  it('without nft, also in cpn doctor', async () => {
    const { find } = await start(closed, (host) => {
      host.actual = { ...host.actual, firewall: [withoutTool] };
    });
    const text =
      'the packet rules of cpn0 do not load: nft is missing or cannot be used; the network is closed, so the tunnel carries nothing until they load';
    const { state, texts, doctor } = await find();
    expect([state, texts]).toEqual(['degraded', expect.arrayContaining([`problem rules-not-loaded: ${text}`])]);
    expect(doctor).toContain(`problem: ${text}`);
  });

  it('when another program removes its packet rules, also in cpn doctor', async () => {
    const { simulated, find } = await start(closed);
    simulated.actual = { ...simulated.actual, firewall: null };
    const text =
      'the packet rules of cpn0 are not all loaded; this host may not enforce the rules of the closed network until they are';
    const { state, texts, doctor } = await find();
    expect([state, texts]).toEqual(['degraded', expect.arrayContaining([`problem rules-not-loaded: ${text}`])]);
    expect(doctor).toContain(`problem: ${text}`);
  });

  it('if this version cannot use a part of a rule, and the log has that once', async () => {
    const { simulated, evaluate, find } = await start({ ...closed, unread: ['web', 'db\u001b[31m'] });
    const text =
      'this version of cpn cannot use a part of these rules, and so allows less than they do: web, db\ufffd[31m';
    expect(await find()).toMatchObject({
      state: 'degraded',
      texts: [`problem access-rules-unread: ${text}`],
      doctor: ['ok: is loaded', `problem: ${text}`],
    });
    const listener = new ProblemListener(simulated.tools);
    for (let pass = 0; pass < 2; pass += 1) listener.onPass(passOf(await evaluate()));
    const logged = simulated.logged.filter(({ facts }) => 'code' in facts);
    expect(logged).toMatchObject([
      { level: 'warn', message: 'rules of the closed network cannot be used', facts: { code: 'access-rules-unread' } },
    ]);
  });
});

it('a host for which the rules are too many has a problem', async () => {
  const { evaluate } = await start(closed);
  const evaluation = await evaluate();
  const codesWith = (count: number) => {
    // A list of this length is too large to store.
    const ports = Array.from({ length: count }, () => ({ first: 22, last: 22 }));
    const rules = { ...closed, rules: closed.rules.map((rule) => ({ ...rule, ports })) };
    const { state } = evaluation;
    const map = { ...state.membership.map, rules };
    const problems = findAccessProblems({
      ...evaluation,
      state: { ...state, membership: { ...state.membership, map } },
    });
    return problems.map(({ code, severity, text }) => `${severity} ${code}: ${text}`);
  };
  expect(codesWith(2 ** 18)).toEqual([]);
  expect(codesWith(2 ** 20)).toEqual([
    'problem access-rules-excessive: the rules of the closed network select more pairs of peers and ports than this host can apply, so that it allows nothing',
  ]);
});

it('a host that ignores the rules has a note', async () => {
  const { status, find } = await start(closed, (host) => {
    host.actual = { ...host.actual, isPlain: true };
  });
  expect((await status()).rules).toEqual({ mode: 'closed', count: 1, refused: null });
  const { state, texts, doctor } = await find();
  const ignored =
    'the network is closed, and this host enforces none of its rules: cpn has no packet rules on this kind of host';
  expect([state, texts]).toEqual(['up', expect.arrayContaining([`note access-rules-ignored: ${ignored}`])]);
  expect(doctor).toContain(`note: ${ignored}`);
});
