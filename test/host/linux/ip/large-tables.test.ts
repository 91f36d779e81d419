import { describe, expect, it } from 'vitest';
import { CommandFailed } from '../../../../src/core/errors/index.ts';
import { listRoutes } from '../../../../src/host/linux/ip/large-tables.ts';
import type { Run } from '../../../../src/host/process/run.ts';

/** What `ip route show` prints for a selector, or how it fails; nothing for any other. */
type Answers = Readonly<Record<string, string | Error>>;

const tooLong = new CommandFailed('ip', null, 'it printed more than 2 MiB');

function prepare(answers: Answers) {
  const selectors: string[] = [];
  const run: Run = async (_tool, args) => {
    const [, selector = ''] = /^-json -details -Numeric (.+)$/.exec(args.join(' ')) ?? [];
    selectors.push(selector.replace('route show ', ''));
    const answer = answers[selectors.at(-1) ?? ''] ?? '';
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return { run, selectors };
}

const usual = (family: string) => [
  `${family} table main`,
  `${family} table all dev cpn0 type unicast`,
  `${family} table all proto 2 type unicast`,
];
/** Boot, static, ra and dhcp: those by which people and networks add routes. */
const few = (family: string) =>
  ['3', '4', '9', '16'].map((protocol) => `${family} table main proto ${protocol} type unicast`);

describe('the routes of a host with large tables', () => {
  it('are the main table, what leads into the interface and what the kernel made, of both families', async () => {
    const { run, selectors } = prepare({});
    expect(await listRoutes(run, 'cpn0')).toEqual({ four: [], six: [], isWhole: true });
    expect(selectors.toSorted()).toEqual([...usual('-4'), ...usual('-6')].toSorted());
  });

  it.each(['-4', '-6'])(
    'are those that people and networks add, where the main table %s is too large',
    async (family) => {
      const { run, selectors } = prepare({ [`${family} table main`]: tooLong });
      expect((await listRoutes(run, 'cpn0')).isWhole).toBe(false);
      expect(selectors.toSorted()).toEqual([...usual('-4'), ...usual('-6'), ...few(family)].toSorted());
    },
  );

  it('have the fields that the selector fixes, which ip leaves out', async () => {
    const { run } = prepare({
      '-4 table main': '[{"dst":"default","gateway":"192.0.2.1","dev":"eth0","protocol":"16"}]',
      '-4 table all dev cpn0 type unicast':
        '[{"dst":"10.9.0.0/16","table":"77"},{"dst":"10.8.0.0/16","nexthops":[{"dev":"cpn0"}]}]',
      '-6 table main': '[{"dst":"default","dev":"eth0"}]',
      '-6 table all proto 2 type unicast': '[{"dst":"fd00::/64","dev":"eth0","table":"1001"}]',
    });
    expect(await listRoutes(run, 'cpn0')).toEqual({
      four: [
        { dst: '0.0.0.0/0', gateway: '192.0.2.1', dev: 'eth0', protocol: '16', table: '254' },
        { dst: '10.9.0.0/16', dev: 'cpn0', table: '77' },
        { dst: '10.8.0.0/16', nexthops: [{ dev: 'cpn0' }] },
      ],
      six: [
        { dst: '::/0', dev: 'eth0', table: '254' },
        { dst: 'fd00::/64', dev: 'eth0', table: '1001', protocol: '2' },
      ],
      isWhole: true,
    });
  });

  it.each([
    'RTNETLINK answers: Address family not supported by protocol',
    'Error: ipv4: FIB table does not exist.',
    'Cannot find device "cpn0"',
  ])('are none where there is no such family, table or interface: %s', async (stderr) => {
    const absent = new CommandFailed('ip', 1, stderr);
    const { run } = prepare(Object.fromEntries([...usual('-4'), ...usual('-6')].map((selector) => [selector, absent])));
    expect(await listRoutes(run, 'cpn0')).toEqual({ four: [], six: [], isWhole: true });
  });

  it('are not known after any other failure, and after an end without JSON', async () => {
    const denied = new CommandFailed('ip', 1, 'Cannot open netlink socket: Permission denied');
    await expect(listRoutes(prepare({ '-6 table main': denied }).run, 'cpn0')).rejects.toThrow('Permission denied');
    await expect(listRoutes(prepare({ '-4 table main': '[{' }).run, 'cpn0')).rejects.toMatchObject({
      name: 'UnreadableOutput',
    });
    // What leads into the interface is never cut.
    const cut = prepare({ '-4 table all dev cpn0 type unicast': tooLong });
    await expect(listRoutes(cut.run, 'cpn0')).rejects.toBe(tooLong);
  });
});
