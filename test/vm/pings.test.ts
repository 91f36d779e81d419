import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Outcome } from '../lab/process.ts';
import { run } from '../lab/run.ts';

const guest = join(import.meta.dirname, 'guest');

/** Sources the functions of the steps; $1 is the folder for their files. */
const prelude = `
mine=$1 out=$1 there=127.0.0.1
. ${guest}/lib.sh
. ${guest}/pings.sh
`;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cpn-pings-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Runs a script as a step, in namespaces of its own with nothing but loopback, which end with it. */
function runStep(script: string): Promise<Outcome> {
  const alone = ['unshare', '--net', '--pid', '--fork', '--kill-child'];
  const shell = ['bash', '-euo', 'pipefail', '-c', `ip link set lo up\n${prelude}\n${script}`, 'step', folder];
  return run([...alone, ...shell], { allowFailure: true, timeoutMs: 50_000 });
}

const figures = () => readFileSync(join(folder, 'results.jsonl'), 'utf8');

/** Functions that drop the pings that arrive, and count them. */
const dropping = `
drop_pings() {
  nft 'add table inet pings; add chain inet pings input { type filter hook input priority 0; }'
  nft add rule inet pings input icmp type echo-request counter drop
}
dropped_some() { nft list chain inet pings input | grep -E 'packets ([3-9]|[1-9][0-9]+) '; }
`;

describe('pings while a command runs', () => {
  it('pass where every packet is answered', async () => {
    const { exitCode, stderr } = await runStep('keeps_pinging true');
    expect(stderr).not.toContain('expected');
    expect(exitCode).toBe(0);
    expect(figures()).toMatch(/"figure": "pings during: true", "value": "[1-9]\d* sent, 0 lost"/);
  });

  it('fail where the tunnel is down for a moment', async () => {
    const { exitCode } = await runStep(`${dropping}
      blink() { drop_pings; eventually dropped_some; nft delete table inet pings; }
      keeps_pinging blink`);
    expect(exitCode).not.toBe(0);
    expect(figures()).toMatch(/ sent, ([3-9]|[1-9]\d+) lost"/);
  });

  it('fail where the tunnel is down from the end of the command on', async () => {
    const { exitCode, stderr } = await runStep(`${dropping}
      end() { drop_pings; patience=2; }
      keeps_pinging end`);
    expect(exitCode).not.toBe(0);
    expect(stderr).toContain('not in time: replied_after');
  });

  it('fail where the command fails', async () => {
    expect((await runStep('keeps_pinging false')).exitCode).not.toBe(0);
  });
});

describe('the count of lost packets', () => {
  const reply = (number: number) => `64 bytes from 10.77.0.2: icmp_seq=${number} ttl=64 time=9.31 ms`;
  const end = [
    '',
    '--- 10.77.0.2 ping statistics ---',
    '6 packets transmitted, 5 received, 16.6667% packet loss, time 1 ms',
  ];

  it.each([
    ['all answered', [reply(1), reply(2), reply(3)], '3 0'],
    ['a gap', [reply(1), reply(2), reply(5)], '5 2'],
    ['the first ones', [reply(3), reply(4)], '4 2'],
    ['the reply to the last packet under way', [1, 2, 3, 4, 5].map(reply), '5 0'],
    [
      'an error instead of a reply',
      [reply(1), 'From 10.77.0.1 icmp_seq=2 Destination Host Unreachable', reply(3)],
      '3 1',
    ],
    ['a reply twice', [reply(1), reply(2), `${reply(2)} (DUP!)`, reply(3)], '3 0'],
    ['replies in another order', [reply(2), reply(1), reply(10), reply(9)], '10 6'],
    ['no reply', [], '0 0'],
  ])('%s', async (_, lines, counts) => {
    writeFileSync(join(folder, 'replies'), `${[...lines, ...end].join('\n')}\n`);
    const { stdout } = await run(['bash', '-euc', `${prelude} echo "$(count_sent) $(count_lost)"`, 'step', folder]);
    expect(stdout).toBe(`${counts}\n`);
  });
});
