import { expect, it } from 'vitest';
import { ageRules, refuseExpired } from '../../../src/core/forward/deadline-rules.ts';
import { firewallMarks, markOtherTimeouts } from '../../../src/core/forward/own-table.ts';
import type { Address } from '../../../src/core/net/cidr.ts';
import { address, bare } from '../samples.ts';

const peer = (text: string, at: number) => ({ first: address(text) as Address, last: address(text) as Address, at });
const ranges = [peer('10.77.0.2', 100_000), peer('10.77.0.3', 20_000)];
const firewall = {
  link: 'cpn0',
  rules: [...refuseExpired('cpn0', ranges), ...ageRules('cpn0', 60_000, address('10.77.0.1'))],
};
const loaded = firewallMarks(firewall);
const observed = (timeouts: Record<string, number>, now = 50_000) =>
  markOtherTimeouts(firewall, { ...bare, firewall: loaded, timeouts }, now);
const right = { 'unexpired 10.77.0.2': 50, 'valid cpn0': 10 };

it('a table whose elements end when their rules say is as it should be', () => {
  expect(observed(right)).toBe(loaded);
  expect(observed({ 'unexpired 10.77.0.2': 45, 'valid cpn0': 15 })).toBe(loaded);
  expect(markOtherTimeouts(null, { ...bare, firewall: loaded }, 0)).toBe(loaded);
  // Other rules are loaded again anyway.
  expect(markOtherTimeouts(firewall, { ...bare, firewall: ['forward cpn other 1'] }, 0)).toEqual([
    'forward cpn other 1',
  ]);
});

it.each([
  ['later', { ...right, 'valid cpn0': 16 }, 'valid cpn0'],
  ['never', { ...right, 'unexpired 10.77.0.2': Number.POSITIVE_INFINITY }, 'unexpired 10.77.0.2'],
  ['although it has ended', { ...right, 'unexpired 10.77.0.3': 30 }, 'unexpired 10.77.0.3'],
  ['although no rule has it', { ...right, 'unexpired 10.77.0.9': 30 }, 'unexpired 10.77.0.9'],
  ['too early', { 'unexpired 10.77.0.2': 50 }, 'valid cpn0'],
])('a table with an element that ends %s is to be loaded again', (_, timeouts, name) => {
  expect(observed(timeouts)).toEqual([...loaded, `(timeout of ${name})`]);
});
