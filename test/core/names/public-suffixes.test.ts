import { expect, test } from 'vitest';
import { findPublicSuffixes } from '../../../src/core/names/public-suffixes.ts';

test.each(['com', 'co.uk', 'github.io', 's3.amazonaws.com', 'xn--p1ai', 'corp'])(
  '%s is a public suffix',
  async (domain) => {
    expect(await findPublicSuffixes([domain, 'corp.example'])).toEqual([domain]);
  },
);

test.each(['corp.example', 'x.co.uk', 'x.github.io', 'corp.local', 'ad.corp', 'home.arpa'])(
  '%s is none',
  async (domain) => {
    expect(await findPublicSuffixes([domain])).toEqual([]);
  },
);
