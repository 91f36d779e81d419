import { describe, expect, it } from 'vitest';
import { checkAuthorities } from '../../../src/core/doctor/check-certificate.ts';
import { checkSync } from '../../../src/core/doctor/check-sync.ts';
import type { Certificate } from '../../../src/core/tls/certificate.ts';

describe('checkSync', () => {
  const since = '2030-03-01T12:00:30.000Z';
  const lastSuccess = '2030-03-01T11:00:00.000Z';

  it('has the failure of the daemon before the success of a command', () => {
    const daemonFailure = { error: 'unknown issuer', since, lastSuccess };
    const [finding] = checkSync('cpn0', { lastSuccess: since, error: null, daemonFailure });
    expect(finding).toMatchObject({
      ...{ subject: 'daemon', verdict: 'problem', checked: 'the last sync of cpn0 by the daemon' },
      found: 'fails since 2030-03-01 12:00 UTC; its last success was at 2030-03-01 11:00 UTC: unknown issuer',
      remedy: expect.stringMatching(/"cpn set cpn0" saves --ca-file and --proxy for both, and "systemctl restart cpn"/),
    });
    const [first] = checkSync('cpn0', {
      lastSuccess,
      error: null,
      daemonFailure: { ...daemonFailure, lastSuccess: null },
    });
    expect(first?.found).toContain('it has not succeeded since it started: unknown issuer');
  });

  it('has a refusal as a note, because the remedy of a refusal is no other environment', () => {
    const daemonFailure = { error: 'reading was refused (403): suspended', since, lastSuccess };
    const check = (refusal: string | null) =>
      checkSync('cpn0', { lastSuccess, error: 'x', refusal, daemonFailure }).map(({ verdict, remedy }) => [
        verdict,
        remedy,
      ]);
    expect(check(daemonFailure.error)).toEqual([['note', 'see the findings about the control plane below']]);
    // A command was refused, and the daemon fails for another reason.
    expect(check('reading was refused (401): no')).toEqual([['problem', expect.stringContaining('cpn set cpn0')]]);
    expect(check(null)).toEqual([['problem', expect.stringContaining('cpn set cpn0')]]);
  });

  it('has the last success, and a failure of a command as a note', () => {
    expect(checkSync('cpn0', { lastSuccess, error: null, daemonFailure: null })).toMatchObject([
      { verdict: 'ok', found: 'succeeded at 2030-03-01 11:00 UTC' },
    ]);
    expect(checkSync('cpn0', { lastSuccess, error: 'refused', daemonFailure: null })).toMatchObject([
      { verdict: 'note', found: 'failed: refused' },
    ]);
    expect(checkSync('cpn0', { lastSuccess: null, error: null, daemonFailure: null })).toEqual([]);
  });
});

describe('checkAuthorities', () => {
  const now = Date.parse('2030-03-01T12:00:00.000Z');
  const ending = (days: number): Certificate => ({
    ...{ subject: 'Office Root', issuer: 'Office Root', names: [], validFrom: now - 90 * 86_400_000 },
    validTo: now + days * 86_400_000,
    ...{ isSelfIssued: true, isAuthority: true, isForServers: true, namesIssuerUrl: false },
  });
  const check = (days: number) => checkAuthorities('cpn0', [ending(days)], now / 1000)[0];

  it('has name and end of each CA, and a problem where it ends soon or has ended', () => {
    expect(check(90)).toMatchObject({
      ...{ verdict: 'ok', checked: 'the CA "Office Root" of cpn0' },
      found: 'is the only CA accepted for the control plane; it expires on 2030-05-30 12:00 UTC',
    });
    expect(check(3)).toMatchObject({ verdict: 'problem', found: expect.stringContaining('in 3 days') });
    expect(check(-1)).toMatchObject({
      ...{ verdict: 'problem', found: 'expired on 2030-02-28 12:00 UTC' },
      remedy: 'cpn set cpn0 --ca-file FILE, with its successor too',
    });
  });
});
