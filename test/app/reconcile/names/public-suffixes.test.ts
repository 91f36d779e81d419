import { expect, test } from 'vitest';
import { findPublicSuffixes } from '../../../../src/app/reconcile/names/public-suffixes.ts';
import { address, prefix } from '../../../core/samples.ts';
import { mapAt } from '../../joined-state.ts';

const ofDomain = (domain: string) => {
  const routeDns = [{ route: prefix('192.168.50.0/24'), servers: [address('192.168.50.53')], domains: [domain] }];
  return findPublicSuffixes({ map: mapAt('"1"', [], { routeDns }) });
};

test.each(['com', 'co.uk', 'github.io', 's3.amazonaws.com', 'xn--p1ai', 'corp'])(
  '%s is a public suffix',
  async (domain) => {
    expect(await ofDomain(domain)).toEqual([domain]);
  },
);

test.each(['corp.example', 'x.co.uk', 'x.github.io', 'corp.local', 'ad.corp'])('%s is none', async (domain) => {
  expect(await ofDomain(domain)).toEqual([]);
});
