import { describe, expect, it } from 'vitest';
import type { Certificate } from '../../../src/core/tls/certificate.ts';
import { findFirstToEnd, judgeIntermediates, judgeValidity } from '../../../src/core/tls/served-chain.ts';

const now = Date.parse('2030-03-01T12:00:00.000Z');
const day = 86_400_000;

function certificate(changes: Partial<Certificate> = {}): Certificate {
  return {
    subject: 'cp.example.net',
    issuer: 'Intermediate',
    names: ['cp.example.net'],
    validFrom: now - 90 * day,
    validTo: now + 90 * day,
    isSelfIssued: false,
    isAuthority: false,
    isForServers: true,
    namesIssuerUrl: false,
    ...changes,
  };
}

const intermediate = (changes: Partial<Certificate> = {}) =>
  certificate({ subject: 'Intermediate', issuer: 'Root', isAuthority: true, ...changes });
const judge = (...chain: Certificate[]) => judgeValidity(chain, now, 'renew');

describe('the validity of a chain', () => {
  it('is judged by 14 days, to the moment', () => {
    expect(judge(certificate({ validTo: now + 14 * day + 1 }))).toBeNull();
    expect(judge(certificate({ validTo: now + 14 * day }))).toEqual({
      kind: 'expires-soon',
      problem: 'expires on 2030-03-15 12:00 UTC, in 14 days',
      remedy: 'renew',
    });
    expect(judge(certificate({ validTo: now + 1.5 * day }))?.problem).toMatch(/, in 1 day$/);
    expect(judge(certificate({ validTo: now + 1 }))?.kind).toBe('expires-soon');
    expect(judge(certificate({ validTo: now }))).toMatchObject({
      kind: 'expired',
      problem: 'expired on 2030-03-01 12:00 UTC',
    });
  });

  it('is that of the certificate that ends first, which is named', () => {
    const chain = [certificate(), intermediate({ validTo: now - day })];
    expect(judge(...chain)?.problem).toBe('of the issuer "Intermediate" expired on 2030-02-28 12:00 UTC');
    expect(findFirstToEnd(chain)?.subject).toBe('Intermediate');
    expect([judge(), findFirstToEnd([])]).toEqual([null, null]);
  });

  it('of a few days is judged by a third of its lifetime', () => {
    const short = (left: number) => certificate({ validFrom: now - (6 - left) * day, validTo: now + left * day });
    expect(judge(short(2.1))).toBeNull();
    expect(judge(short(1.9))).toMatchObject({ kind: 'expires-soon' });
    expect(judge(short(3), intermediate({ validTo: now + 10 * day, validFrom: now - 90 * day }))).not.toBeNull();
  });

  it('begins in the future', () => {
    expect(judge(certificate({ validFrom: now + day }))).toMatchObject({ kind: 'not-yet-valid' });
  });
});

describe('an intermediate certificate', () => {
  it('is missing where the file lacks the issuer and this machine does not trust it', () => {
    expect(judgeIntermediates([certificate()], false)).toMatchObject({
      kind: 'no-intermediate',
      problem: 'is sent without the certificate of "Intermediate", which issued it',
      remedy: expect.stringContaining('append the certificate of "Intermediate"'),
    });
    expect(judgeIntermediates([certificate(), intermediate({ subject: 'Other' })], false)).not.toBeNull();
  });

  it.each([
    ['with its issuer', [certificate(), intermediate()], false],
    ['of a trusted root', [certificate()], true],
    ['signed by itself', [certificate({ isSelfIssued: true })], false],
    ['that cannot be read', [], false],
  ])('is not missing in a file %s', (_, chain, trusted) => {
    expect(judgeIntermediates(chain, trusted)).toBeNull();
  });
});
