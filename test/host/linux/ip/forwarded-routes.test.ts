import { describe, expect, it } from 'vitest';
import { parseAddress } from '../../../../src/core/net/cidr.ts';
import { readForwarded, renderForwarded } from '../../../../src/host/linux/ip/forwarded-routes.ts';
import type { LookupResult } from '../../../../src/host/linux/ip/route-lookups.ts';
import { prefix } from '../../../core/samples.ts';

const lan = prefix('192.168.50.0/24');
const packets = {
  source: parseAddress('10.77.0.9'),
  destinations: [{ route: lan, addresses: ['192.168.50.129', '192.168.50.254'].map((each) => parseAddress(each)) }],
};
const leaves = (dev: string, type = '1'): LookupResult => ({
  json: `[{"type":"${type}","dst":"192.168.50.129","from":"10.77.0.9","dev":"${dev}","table":"254","iif":"cpn0"}]`,
});
const refuses = (refusal: string): LookupResult => ({ refusal });
const verdictOf = (...answers: LookupResult[]) => readForwarded('cpn0', packets, answers)[lan];

describe('what the kernel does with packets that come out of the tunnel', () => {
  it('is looked up for each address, from a member and by the interface', () => {
    expect(renderForwarded('cpn0', packets)).toEqual([
      'route get 192.168.50.129 from 10.77.0.9 iif cpn0',
      'route get 192.168.50.254 from 10.77.0.9 iif cpn0',
    ]);
  });

  it('is right where a packet to one of the addresses leaves', () => {
    expect(verdictOf(refuses('Network is unreachable'), leaves('eth1'))).toEqual({ links: ['eth1'], why: null });
    expect(verdictOf(leaves('eth1'), leaves('eth2'))).toEqual({ links: ['eth1', 'eth2'], why: null });
  });

  it.each([
    ['Network is unreachable', 'has no route there'],
    ['No route to host', 'makes it unreachable'],
    ['Permission denied', 'prohibits it'],
    ['Invalid argument', 'drops packets'],
  ])('is named where none leaves: %s', (refusal, why) => {
    const verdict = verdictOf(refuses(refusal), refuses(refusal));
    expect(verdict).toMatchObject({ links: [], why: expect.stringContaining(why) });
  });

  it('is named where packets go back into the tunnel', () => {
    expect(verdictOf(leaves('cpn0'), leaves('cpn0'))?.why).toContain('back into cpn0');
  });

  it('is not known where the addresses are of this host, or where the kernel judges the source', () => {
    expect(verdictOf(leaves('lo', '2'), refuses('Invalid cross-device link'))).toBeUndefined();
    expect(verdictOf(leaves('lo', '2'), leaves('eth1'))).toEqual({ links: ['eth1'], why: null });
  });
});
