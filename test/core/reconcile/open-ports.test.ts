import { describe, expect, it } from 'vitest';
import type { OpenPort, PortState } from '../../../src/core/host-state/receipt.ts';
import { planPorts, without } from '../../../src/core/reconcile/open-ports.ts';

const ufw = (port: number): OpenPort => ({ by: 'ufw', port, zone: null, permanent: true });
const zone = (port: number, permanent: boolean): OpenPort => ({ by: 'firewalld', port, zone: 'public', permanent });
const planned = (port: number | null, ours: readonly OpenPort[], ...states: readonly PortState[]) => {
  const { steps, ours: kept } = planPorts({ link: 'cpn0', port, ours, states });
  const shown = steps.map(({ do: what, changes }) => [what, ...changes.map(({ target }) => target)].join(' '));
  return { steps: shown, ours: kept };
};

describe('the ports that are to be open', () => {
  it('are opened where they are closed, and are ours from then on', () => {
    expect(planned(51820, [], { at: ufw(51820), is: 'closed' })).toEqual({
      steps: ['open-port ufw'],
      ours: [ufw(51820)],
    });
    const states: PortState[] = [
      { at: zone(51820, false), is: 'open' },
      { at: zone(51820, true), is: 'closed' },
    ];
    expect(planned(51820, [], ...states)).toEqual({
      steps: ['open-port firewalld zone public, permanent'],
      ours: [zone(51820, true)],
    });
  });

  it.each<[string, Partial<OpenPort>]>([
    ['zone', { zone: 'internal' }],
    ['configuration', { permanent: true }],
    ['program', { by: 'ufw', zone: 'public' }],
    ['port', { port: 51821 }],
  ])('differ by their %s', (_, changed) => {
    const [one, other] = [zone(51820, false), { ...zone(51820, false), ...changed }];
    const { ours } = planPorts({ link: 'cpn0', port: other.port, ours: [one], states: [{ at: other, is: 'closed' }] });
    expect(ours).toEqual([one, other]);
    expect(without([one, other], one)).toEqual([other]);
    expect(without([one, other], other)).toEqual([one]);
  });

  it('are not ours where they were open before, and stay as they are where a person refused them', () => {
    for (const is of ['open', 'refused'] as const) {
      expect(planned(51820, [], { at: ufw(51820), is })).toEqual({ steps: [], ours: [] });
    }
  });

  it('are ours again where a rule has our comment, and are opened again where the rule is gone', () => {
    expect(planned(51820, [], { at: ufw(51820), is: 'ours' })).toEqual({ steps: [], ours: [ufw(51820)] });
    expect(planned(51820, [ufw(51820)], { at: ufw(51820), is: 'closed' })).toEqual({
      steps: ['open-port ufw'],
      ours: [ufw(51820)],
    });
  });

  it('are ours no more where a person gave ufw a rule in the place of ours, which stays', () => {
    const theirs = { at: ufw(51820), is: 'open' } as const;
    expect(planned(51820, [ufw(51820)], theirs)).toEqual({ steps: [], ours: [] });
    expect(planned(null, [ufw(51820)], theirs)).toEqual({ steps: [], ours: [] });
    expect(planned(51999, [ufw(51820)], theirs, { at: ufw(51999), is: 'closed' })).toEqual({
      steps: ['open-port ufw'],
      ours: [ufw(51999)],
    });
    expect(planned(null, [ufw(51820)], { at: ufw(51820), is: 'closed' }).steps).toEqual(['close-port ufw']);
    expect(planned(51820, [zone(51820, true)], { at: zone(51820, true), is: 'open' }).ours).toHaveLength(1);
  });

  it('move with the listen port, and the new one is open before the old one is closed', () => {
    expect(planned(51999, [ufw(51820)], { at: ufw(51999), is: 'closed' }).steps).toEqual([
      'open-port ufw',
      'close-port ufw',
    ]);
  });

  it('are closed where none is to be open', () => {
    expect(planned(null, [ufw(51820), zone(51820, false)]).steps).toEqual([
      'close-port ufw',
      'close-port firewalld zone public, runtime',
    ]);
  });
});
