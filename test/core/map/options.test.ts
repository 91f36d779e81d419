import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InvalidValue } from '../../../src/core/errors/index.ts';
import { formatProbeTarget, parseProbeTarget } from '../../../src/core/map/options.ts';

describe('a probe target', () => {
  it.each([
    ['192.168.50.20', { host: '192.168.50.20', port: null }],
    ['192.168.50.20:8000', { host: '192.168.50.20', port: 8000 }],
    ['NAS.example:443', { host: 'nas.example', port: 443 }],
    ['nas', { host: 'nas', port: null }],
    ['fd07::20', { host: 'fd07::20', port: null }],
    ['[fd07:0::20]:443', { host: 'fd07::20', port: 443 }],
  ])('%s is a host with a port or without', (text, target) => {
    expect(parseProbeTarget(text, '--probe')).toEqual(target);
  });

  it.each([
    '',
    ' ',
    '192.168.50.0/24',
    '192.168.50.20:',
    '192.168.50.20:0',
    '192.168.50.20:65536',
    'a b',
    '1.2.3',
    ':80',
  ])('%j is none', (text) => {
    expect(() => parseProbeTarget(text, '--probe')).toThrow(InvalidValue);
    expect(() => parseProbeTarget(text, '--probe')).toThrow(/^--probe "/);
  });

  it('is read again as it was written', () => {
    const host = fc.oneof(fc.ipV4(), fc.ipV6(), fc.domain());
    const port = fc.option(fc.integer({ min: 1, max: 65535 }));
    fc.assert(
      fc.property(host, port, (name, at) => {
        const text = at === null ? name : name.includes(':') ? `[${name}]:${at}` : `${name}:${at}`;
        let target: ReturnType<typeof parseProbeTarget>;
        try {
          target = parseProbeTarget(text);
        } catch {
          fc.pre(false);
          return;
        }
        expect(target.port).toBe(at);
        expect(parseProbeTarget(formatProbeTarget(target))).toEqual(target);
      }),
    );
  });
});
