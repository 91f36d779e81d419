import { describe, expect, it } from 'vitest';
import { isRefused, probesOf, readAnswers, renderLookup } from '../../../../src/host/linux/ip/route-lookups.ts';
import { prefix } from '../../../core/samples.ts';

describe('the addresses that stand for a prefix', () => {
  it.each([
    ['192.168.50.0/24', ['192.168.50.1', '192.168.50.129', '192.168.50.254']],
    ['10.0.0.8/29', ['10.0.0.9', '10.0.0.13', '10.0.0.14']],
    ['10.0.0.8/30', ['10.0.0.8']],
    ['203.0.113.1/32', ['203.0.113.1']],
    ['fd00:5::/64', ['fd00:5::']],
  ])('of %s lie within it', (text, expected) => {
    expect(probesOf(prefix(text))).toEqual(expected);
  });

  it('are looked up as packets of WireGuard itself are', () => {
    expect(probesOf(prefix('203.0.113.1/32')).map(renderLookup)).toEqual(['route get fibmatch 203.0.113.1 mark 8349']);
  });
});

describe('the answers of a batch', () => {
  const lines = ['rule show', 'route get fibmatch 10.9.0.1', 'route get fibmatch 20.0.0.1', 'route get fibmatch ::1'];

  it('are output or an error for each line', () => {
    const stderr =
      'RTNETLINK answers: Invalid argument\nCommand failed -:2\nRTNETLINK answers: Network is unreachable\nCommand failed -:4\n';
    const answers = readAnswers(lines, '[{"priority":0}]\n[{"dst":"default"}]\n', stderr);
    expect(answers).toEqual([
      { json: '[{"priority":0}]' },
      { refusal: 'Invalid argument' },
      { json: '[{"dst":"default"}]' },
      { refusal: 'Network is unreachable' },
    ]);
    expect(answers.map(isRefused)).toEqual([false, true, false, false]);
  });

  it('are none where one of them is missing', () => {
    expect(() => readAnswers(lines, '[]\n[]\n', '')).toThrow('has not a line for each command');
  });
});
