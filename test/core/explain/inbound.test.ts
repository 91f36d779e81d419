import { describe, expect, it } from 'vitest';
import { checkInboundDrop } from '../../../src/core/doctor/check-network.ts';
import { CommandFailed, type CpnError } from '../../../src/core/errors/index.ts';
import type { Unread } from '../../../src/core/forward/foreign/chain.ts';
import type { InboundDrop } from '../../../src/core/forward/foreign/find-inbound-drop.ts';
import type { ForeignDrops } from '../../../src/core/forward/foreign/foreign-drops.ts';
import { type Problem, problem } from '../../../src/core/problems/problem.ts';
import { bare } from '../samples.ts';
import { connector, explain, heard, into, laptop, office, viewOf } from './samples.ts';

const inbound: InboundDrop = {
  port: 51820,
  family: 'ip',
  table: 'filter',
  reason: 'policy drop of chain INPUT',
  rejects: false,
  author: 'ufw',
  command: 'ufw allow 51820/udp',
};
const dropped: ForeignDrops = { forward: [], inbound };
const cause = 'ufw drops UDP to port 51820 (nft table ip filter, policy drop of chain INPUT)';
const remedy = '"cpn set cpn0 --open-firewall" or "ufw allow 51820/udp" lets it in';

/** What the connector, which others dial, says of the way to `to`. */
const seen = viewOf(office, {}, {}, { listenPort: 51820 }, connector);
const underlay = { ...bare.underlay, uplinks: ['eth0'] };
const view: typeof seen = { ...seen, actual: { ...seen.actual, underlay } };
const silent = { ...view, actual: heard(view.actual, { latestHandshake: null, rxBytes: 0 }) };
const check = (to: string, drops: ForeignDrops | null, at = view) =>
  explain(to, at, into('10.77.0.0/24', { source: connector.address }), { drops }).find(
    (each) => each.check === 'firewall',
  );

describe('packet rules of others that drop what peers send to the listen port', () => {
  it('block a peer that must start the session, and has none', () => {
    expect(check(laptop.address, dropped, silent)).toEqual({
      check: 'firewall',
      ok: false,
      detail: `${cause}: laptop cannot start a session with this host, which cannot dial it`,
      remedy,
    });
  });

  it('are worth a remark where this host dials the peer, or has a session with it', () => {
    const remark = { ok: null, detail: `${cause}: other hosts cannot start a session with this one`, remedy };
    expect(check('10.77.0.2', dropped, silent)).toMatchObject(remark);
    expect(check(laptop.address, dropped)).toMatchObject(remark);
  });

  it('are none, or unknown', () => {
    expect(check(laptop.address, { forward: [], inbound: null })).toMatchObject({
      ok: true,
      detail: 'no rule was found that drops UDP to port 51820',
    });
    const unread = { forward: [], inbound: [{ kind: 'set', family: 'ip', table: 'geo', name: 'bad' } as const] };
    expect(check(laptop.address, { forward: [], inbound: null, unread })).toMatchObject({
      ok: null,
      remedy: 'see whether it has their addresses: nft list set ip geo bad',
    });
    expect(check(laptop.address, null)).toMatchObject({
      ok: null,
      detail: expect.stringMatching(/could not be read; "nft list ruleset" as root shows them$/),
    });
  });

  it('block also if other rules could not be read', () => {
    const unread = { forward: [], inbound: [{ kind: 'legacy' } as const] };
    expect(check(laptop.address, { ...dropped, unread }, silent)).toMatchObject({ ok: false, remedy });
  });

  it('block a peer whose session the daemon found silent', () => {
    const { publicKey } = laptop;
    expect(check(laptop.address, dropped, { ...view, silent: { [publicKey]: 500 } })).toMatchObject({ ok: false });
    expect(check(laptop.address, dropped, { ...view, silent: { [publicKey]: 499 } })).toMatchObject({ ok: null });
  });

  it('do not matter to a host that others do not dial', () => {
    const checks = explain(laptop.address, viewOf(office), into('10.77.0.0/24'), { drops: dropped });
    expect(checks.map((each) => each.check)).not.toContain('firewall');
  });

  it('are a problem for doctor, and rules that nft does not show are worth a note', () => {
    const drop = problem('packets-dropped', { interface: 'cpn0', drop: cause, command: remedy });
    const judge = (...given: [Problem | CpnError | null, (readonly Unread[])?]) =>
      checkInboundDrop({ ...view, self: connector }, ...given).map(({ verdict, found, remedy: to }) => [
        verdict,
        found,
        to,
      ]);
    expect(judge(drop, [{ kind: 'legacy' }])).toEqual([['problem', cause, remedy]]);
    expect(judge(new CommandFailed('nft', 1, 'no'))).toEqual([
      ['note', expect.stringMatching(/^they cannot be read: nft /), 'sudo cpn doctor, with nft installed'],
    ]);
    expect(judge(null)).toEqual([['ok', 'none was found that drops it', null]]);
    expect(
      checkInboundDrop({ ...view, self: connector }, null, [{ kind: 'set', family: 'ip', table: 'geo', name: 'bad' }]),
    ).toMatchObject([{ verdict: 'note', found: expect.stringMatching(/^whether rules with the nft set ip geo bad /) }]);
    expect(judge(null, [{ kind: 'legacy' }])).toEqual([
      ['note', expect.stringMatching(/iptables-legacy/), 'see what they drop: iptables-legacy -S'],
    ]);
  });
});
