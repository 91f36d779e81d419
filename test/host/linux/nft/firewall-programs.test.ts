import { describe, expect, test } from 'vitest';
import type { OpenPort } from '../../../../src/core/host-state/receipt.ts';
import { parseUfwRules, readFirewalld, setPortOpen } from '../../../../src/host/linux/nft/firewall-programs.ts';
import type { Run } from '../../../../src/host/process/run.ts';

/** As ufw 0.36.2 prints it. */
const shown = (...rules: readonly string[]) =>
  ["Added user rules (see 'ufw status' for running firewall):", ...rules, ''].join('\n');

describe('the state of a port in ufw', () => {
  test.each([
    ['(None)', 'closed'],
    ['ufw allow 51820/udp', 'open'],
    ['ufw allow 51820', 'open'],
    ['ufw limit 51820/udp', 'open'],
    ["ufw allow 51820/udp comment 'wireguard'", 'open'],
    ["ufw allow 51820/udp comment 'cpn_cpn0'", 'ours'],
    ["ufw allow 51820 comment 'cpn_cpn0'", 'open'],
    ["ufw allow 51820/udp comment 'cpn_cpn1'", 'open'],
    ['ufw allow in 51820/udp', 'open'],
    ['ufw allow log 51820/udp', 'open'],
    ['ufw allow in log-all 51820/udp', 'open'],
    ["ufw limit 51820/udp comment 'cpn_cpn0'", 'open'],
    ['ufw deny 51820/udp', 'refused'],
    ['ufw deny log 51820', 'refused'],
    ['ufw reject in 51820/udp', 'refused'],
    ['ufw allow out 51820/udp', 'closed'],
    ['ufw reject 51820', 'refused'],
    ['ufw allow 51820/tcp', 'closed'],
    ['ufw allow 51821/udp', 'closed'],
    ['ufw allow in on eth0 to any port 51820 proto udp', 'closed'],
    ['ufw allow from 10.0.0.0/8 to any port 51820 proto udp', 'closed'],
  ])('with the rule %j it is %s', (rule, is) => {
    expect(parseUfwRules(shown('ufw allow 22/tcp', rule), 51820, 'cpn_cpn0')).toBe(is);
  });

  test('is ours next to a rule for both protocols, and the first rule that refuses applies', () => {
    const ours = "ufw allow 51820/udp comment 'cpn_cpn0'";
    expect(parseUfwRules(shown('ufw allow 51820', ours), 51820, 'cpn_cpn0')).toBe('ours');
    expect(parseUfwRules(shown('ufw deny 51820', ours), 51820, 'cpn_cpn0')).toBe('refused');
  });
});

describe('firewalld, with a substitute that records its calls', () => {
  /** Answers by the arguments. */
  function standIn(answers: Readonly<Record<string, string>>) {
    const calls: string[] = [];
    const run: Run = async (tool, args) => {
      calls.push([tool, ...args].join(' '));
      return `${answers[args.at(-1) ?? ''] ?? ''}\n`;
    };
    return { run, calls };
  }

  test('is queried for the zones of the interfaces, at runtime and permanent', async () => {
    const { run, calls } = standIn({
      '--get-zone-of-interface=eth0': 'no zone',
      '--get-zone-of-interface=eth1': 'dmz',
      '--get-default-zone': 'public',
      '--query-port=51820/udp': 'no',
    });
    const states = await readFirewalld(run, 51820, ['eth0', 'eth1']);
    expect(states.map(({ at: { zone, permanent }, is }) => [zone, permanent, is])).toEqual([
      ['public', false, 'closed'],
      ['public', true, 'closed'],
      ['dmz', false, 'closed'],
      ['dmz', true, 'closed'],
    ]);
    expect(calls).toContain('firewall-cmd --permanent --zone=dmz --query-port=51820/udp');
  });

  test('ignores a zone with an invalid name', async () => {
    const { run } = standIn({ '--get-default-zone': '--panic-on' });
    expect(await readFirewalld(run, 51820, [])).toEqual([]);
  });

  test('opens and closes one port', async () => {
    const { run, calls } = standIn({});
    const at: OpenPort = { by: 'firewalld', port: 51820, zone: 'public', permanent: true };
    await setPortOpen(run, 'cpn0', at, true);
    await setPortOpen(run, 'cpn0', { ...at, permanent: false }, false);
    await setPortOpen(run, 'cpn0', { ...at, by: 'ufw', zone: null }, true);
    expect(calls).toEqual([
      'firewall-cmd --permanent --zone=public --add-port=51820/udp',
      'firewall-cmd --zone=public --remove-port=51820/udp',
      'ufw allow 51820/udp comment cpn_cpn0',
    ]);
  });

  test.each([
    ['opening at runtime', true, false, true],
    ['opening for good', true, true, true],
    ['closing for good', false, true, true],
    ['closing at runtime, which ends with firewalld', false, false, false],
  ])('is an error while firewalld does not run: %s', async (_, isOpen, permanent, isError) => {
    const allowed: (readonly number[] | undefined)[] = [];
    const run: Run = async (_tool, _args, options) => {
      allowed.push(options?.allowExitCodes);
      return '';
    };
    await setPortOpen(run, 'cpn0', { by: 'firewalld', port: 51820, zone: 'public', permanent }, isOpen);
    expect(allowed).toEqual([isError ? [] : [252]]);
  });

  test.each([
    [["ufw allow 51820/udp comment 'cpn_cpn0'"], true],
    [['ufw deny 51820', "ufw allow 51820/udp comment 'cpn_cpn0'"], true],
    [['ufw allow 51820/udp'], false],
    [["ufw allow 51820/udp comment 'cpn_cpn1'"], false],
    [['(None)'], false],
  ])('of the rules %j of ufw removes one only where it has our comment: %s', async (rules, isRemoved) => {
    const { run, calls } = standIn({ added: shown(...rules) });
    await setPortOpen(run, 'cpn0', { by: 'ufw', port: 51820, zone: null, permanent: true }, false);
    expect(calls).toEqual(['ufw show added', ...(isRemoved ? ['ufw delete allow 51820/udp'] : [])]);
  });
});
