import { describe, expect, it } from 'vitest';
import { WrongUsage } from '../../../src/core/errors/index.ts';
import {
  isCheckedByListener,
  isLoopbackUrl,
  parseServiceAddress,
  withAuthorities,
} from '../../../src/core/net/service-address.ts';

describe('the address of a control plane', () => {
  it.each([
    ['https://user:secret@cp.example', 'credentials'],
    ['https://user@cp.example', 'credentials'],
    ['https://:secret@cp.example', 'credentials'],
    ['https://cp.example?token=secret', 'a query or a fragment'],
    ['https://cp.example#secret', 'a query or a fragment'],
    ['https://cp.example?', 'a query or a fragment'],
    ['https://cp.example#', 'a query or a fragment'],
    ['http://cp.example', 'is plain http'],
    ['http://127.evil.example', 'is plain http'],
    ['http://128.0.0.1', 'is plain http'],
    ['ftp://cp.example', 'is not an http(s) URL'],
  ])('is refused, and no message shows a secret: %s', (text, why) => {
    const parse = () => parseServiceAddress(text, false);
    expect(parse).toThrow(why);
    expect(parse).not.toThrow('secret');
  });

  it.each([
    ['https://cp.example', false, false],
    ['https://127.0.0.1', true, false],
    ['https://localhost:8787', true, false],
    ['http://cp.example', false, false],
    ['http://127.0.0.1:8787', true, true],
    ['http://127.9.9.9', true, true],
    ['http://localhost', true, true],
    ['http://[::1]', true, true],
    ['http://127.evil.example', false, false],
    ['unix:/run/api.sock', true, true],
  ])('%s is on this host (%s), and known by its listener alone (%s)', (url, isHere, isChecked) => {
    expect([isLoopbackUrl(url), isCheckedByListener(url)]).toEqual([isHere, isChecked]);
  });
});

describe('the CAs of an address', () => {
  const service = { url: 'https://cp.example', insecureHttp: false, authorities: ['old'], listener: 7 };
  const { authorities: _, ...without } = service;

  it('are kept, replaced or removed, and the rest of it stays', () => {
    expect(withAuthorities(service, undefined)).toBe(service);
    expect(withAuthorities(service, ['new'])).toEqual({ ...service, authorities: ['new'] });
    expect(withAuthorities(service, null)).toEqual(without);
    expect(withAuthorities(service, null)).not.toHaveProperty('authorities');
    expect(withAuthorities(without, ['new'])).toEqual({ ...service, authorities: ['new'] });
  });

  it('are for TLS alone', () => {
    for (const url of ['http://127.0.0.1', 'unix:/run/api.sock']) {
      expect(() => withAuthorities({ ...without, url }, ['new'])).toThrow(WrongUsage);
      expect(withAuthorities({ ...without, url }, null)).toEqual({ ...without, url });
    }
  });
});
