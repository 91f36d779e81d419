import { expect, test } from 'vitest';
import { EventType } from '../../../src/contract/event.ts';
import { parseWebhook } from '../../../src/control-plane/health/webhook-settings.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { signingSecret } from './receiver.ts';

const parse = (given: { url?: string; secret?: string; events?: string[]; allow?: string[] }) =>
  parseWebhook({
    url: new Secret(given.url ?? 'https://hooks.example.net/cpn'),
    secrets: new Secret(given.secret ?? signingSecret),
    events: given.events ?? [],
    allow: given.allow ?? [],
  });

test('all types are sent unless some are named', () => {
  expect([...parse({}).types]).toEqual(EventType.options);
  expect([...parse({ events: ['peer.online', 'route.dead'] }).types]).toEqual(['peer.online', 'route.dead']);
});

test.each(['http://10.0.0.7/x', 'https://10.0.0.7', 'https://10.0.0.7:8443/x'])('%s can be allowed', (url) => {
  expect(parse({ url, allow: ['10.0.0.7'] }).allow).toEqual(['10.0.0.7/32']);
});

test.each([
  [{ url: 'hooks.example.net' }, '--webhook is not a URL; write it like https://hooks.example.net/cpn'],
  [
    { url: 'ftp://t0p:t0p@hooks.example.net/t0p?t0p#t0p' },
    '--webhook "ftp://hooks.example.net" is not https; use https, or http to an address that --webhook-allow names',
  ],
  [{ url: 'mailto:t0p' }, /^--webhook "mailto:\/\/" is not https; /],
  [
    { url: 'https://me:t0p@hooks.example.net' },
    '--webhook has a user or a password; the receiver checks the signature',
  ],
  [
    { url: 'http://hooks.example.net' },
    '--webhook is plain http; use https, or name the address of the receiver with --webhook-allow',
  ],
  [
    { url: 'https://127.0.0.1/t0p' },
    '--webhook has an address that is loopback; if it is the receiver, add --webhook-allow 127.0.0.1',
  ],
  [
    { url: 'https://[::ffff:10.0.0.1]/t0p' },
    '--webhook has an address that is private; if it is the receiver, add --webhook-allow ::ffff:a00:1',
  ],
  [
    { secret: 't0p' },
    /^--webhook-secret-file does not hold "whsec_" and the base64 of 24 to 64 bytes in line 1; make one: /,
  ],
  [{ secret: `whsec_${Buffer.alloc(23).toString('base64')}` }, /^--webhook-secret-file does not hold /],
  [{ secret: `whsec_${Buffer.alloc(65).toString('base64')}` }, /^--webhook-secret-file does not hold /],
  [{ secret: signingSecret.slice('whsec_'.length) }, /^--webhook-secret-file does not hold /],
  [{ secret: `${signingSecret}\nwhsec_t0p\n` }, /^--webhook-secret-file does not hold .* in line 2; /],
  [{ secret: '' }, /^--webhook-secret-file does not hold .* in line 1; /],
  [{ secret: signingSecret.slice(0, -1) }, /^--webhook-secret-file does not hold /],
  [{ events: ['peer.gone'] }, /^--webhook-events "peer.gone" is not a type of events; the types are peer.enrolled, /],
  [{ allow: ['10.0.0.1/8'] }, /^--webhook-allow "10.0.0.1\/8" has host bits set/],
  [
    { allow: ['example.net'] },
    '--webhook-allow "example.net" is neither a CIDR nor an address; write it like 10.0.0.0/8 or 10.77.0.5',
  ],
])('%j is refused, and no secret is shown', (given, message) => {
  expect(() => parse(given)).toThrow(message);
  expect(() => parse(given)).not.toThrow(/t0p/);
});
