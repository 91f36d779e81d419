import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Input } from '../../../src/cli/input/input.ts';
import { maxAgeFlag, readMaxAge } from '../../../src/cli/parse/max-age-flag.ts';
import { operationFlags, readOperation } from '../../../src/cli/parse/operation-flags.ts';
import { readWebhook, webhookFlags } from '../../../src/cli/parse/webhook-flags.ts';
import { usualSessionLimits } from '../../../src/control-plane/domain/session-limits.ts';

let folder: string;
let secret: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'cpn-flags-'));
  secret = join(folder, 'secret');
  writeFileSync(secret, 'whsec_YWJj\n', { mode: 0o600 });
});
afterAll(() => rmSync(folder, { recursive: true }));

const hour = 3600 * 1000;

const operate = (given: object) => readOperation(new Input({ ...given }, operationFlags, {}));

describe('the operation of a control plane', () => {
  it('without flags has the limits of the help, and nothing else', () => {
    const { limits, ...others } = operate({});
    expect(others).toEqual({
      tls: null,
      proxies: [],
      publicUrls: [],
      metrics: null,
      sessionLimits: usualSessionLimits,
    });
    const usual = (flag: string) => Number(operationFlags[`limit-${flag}`]?.byDefault);
    expect(limits).toEqual({
      failedLogins: usual('failed-logins'),
      failedEnrollments: usual('failed-enrollments'),
      requests: usual('requests'),
      peerChanges: usual('peer-changes'),
      userChanges: usual('user-changes'),
    });
  });

  it('takes each limit from its own flag, within its bounds', () => {
    const flags = ['failed-logins', 'failed-enrollments', 'requests', 'peer-changes', 'user-changes'];
    const given = Object.fromEntries(flags.map((flag, index) => [`limit-${flag}`, String(index + 1)]));
    const { failedLogins, failedEnrollments, requests, peerChanges, userChanges } = operate(given).limits;
    expect([failedLogins, failedEnrollments, requests, peerChanges, userChanges]).toEqual([1, 2, 3, 4, 5]);
    for (const flag of flags) {
      expect(() => operate({ [`limit-${flag}`]: '1000000' })).not.toThrow();
      for (const wrong of ['0', '1000001', '-1', '1.5', 'many'])
        expect(() => operate({ [`limit-${flag}`]: wrong })).toThrow('is not a number from 1 to 1000000');
    }
  });

  it.each([
    [{ 'session-idle': '5m' }, hour / 12, 7 * 24 * hour],
    [{ 'session-max': '12h' }, 12 * hour, 12 * hour],
    [{ 'session-max': '30d' }, 24 * hour, 30 * 24 * hour],
    [{ 'session-idle': '365d', 'session-max': '365d' }, 365 * 24 * hour, 365 * 24 * hour],
  ])('has sessions with the limits of %j', (given, idleMs, maxMs) => {
    expect(operate(given).sessionLimits).toEqual({ idleMs, maxMs });
  });

  it('has no session that lasts longer unused than used, nor with a limit that is no time', () => {
    for (const given of [{ 'session-idle': '8d' }, { 'session-idle': '2h', 'session-max': '1h' }])
      expect(() => operate(given)).toThrow('--session-idle is longer than --session-max');
    for (const flag of ['session-idle', 'session-max'])
      for (const wrong of ['4m', '366d', '0', '1', '300s', 'never'])
        expect(() => operate({ [flag]: wrong }), wrong).toThrow('is not a time from 5m to 365d');
  });

  it.each(['0.0.0.0/0', '::/0'])('trusts no proxy %s, which is every client', (range) => {
    expect(() => operate({ 'trust-proxy': [`192.0.2.1,${range}`] })).toThrow('would trust every client');
  });

  it('trusts proxies by address and by range, of both families, each once', () => {
    const given = { 'trust-proxy': ['192.0.2.1, 10.0.0.0/8', '2001:db8::1', '192.0.2.1'] };
    expect(operate(given).proxies).toEqual(['192.0.2.1/32', '10.0.0.0/8', '2001:db8::1/128']);
  });

  it.each(['cert', 'key'])('takes no --tls-%s alone', (part) => {
    expect(() => operate({ [`tls-${part}`]: 'file' })).toThrow('give both, or neither');
    expect(operate({ 'tls-cert': 'c', 'tls-key': 'k' }).tls).toEqual({ certificate: 'c', key: 'k' });
  });

  it('takes a public URL of http or https without user, query and fragment', () => {
    expect(operate({ 'public-url': ['https://cp.example.net/vpn/'] }).publicUrls.map(String)).toEqual([
      'https://cp.example.net/vpn/',
    ]);
    for (const wrong of ['cp.example.net', 'ftp://x/', 'https://u@x/', 'https://:p@x/', 'https://x/?q', 'https://x/#f'])
      expect(() => operate({ 'public-url': [wrong] }), wrong).toThrow(/--public-url|is not a URL/);
  });
});

describe('the webhook of a control plane', () => {
  const read = (given: object) => readWebhook(new Input({ ...given }, webhookFlags, {}));

  it('is none without flags, and whole or refused with some', async () => {
    expect(await read({})).toBeNull();
    const url = 'https://hooks.example.net/cpn';
    for (const part of [{ webhook: url }, { 'webhook-secret-file': secret }])
      await expect(read(part)).rejects.toThrow('give both, or neither');
    for (const part of [{ 'webhook-events': ['peer.online'] }, { 'webhook-allow': ['10.0.0.1'] }])
      await expect(read(part)).rejects.toThrow('give --webhook too');
    const lists = { 'webhook-events': ['peer.online, peer.offline', 'peer.online'], 'webhook-allow': ['10.0.0.1'] };
    const whole = await read({ webhook: url, 'webhook-secret-file': secret, ...lists });
    expect([whole?.url.reveal(), whole?.secrets.reveal()]).toEqual([url, 'whsec_YWJj']);
    expect([whole?.events, whole?.allow]).toEqual([['peer.online', 'peer.offline'], ['10.0.0.1']]);
  });
});

describe('the maximum age of a map', () => {
  const read = (text?: string) => readMaxAge(new Input(text === undefined ? {} : { 'max-age': text }, maxAgeFlag, {}));

  it.each([
    [undefined, undefined],
    ['off', null],
    ['5m', 300],
    ['90m', 5400],
    ['24h', 86_400],
    ['7d', 604_800],
    ['365d', 31_536_000],
  ])('%s is %s', (text, seconds) => {
    expect(read(text)).toBe(seconds);
  });

  it.each(['4m', '366d', '8761h', '0', '300', '1w', '5 m', '-1d', 'never'])('%s is refused', (text) => {
    expect(() => read(text)).toThrow('must be from 5m to 365d');
  });
});
