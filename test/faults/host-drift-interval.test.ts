import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import { expectUnharmed, findActs, repairing } from './drift.ts';
import { answers } from './drift-lab.ts';
import { NamedLab } from './named-lab.ts';
import { injecting } from './record.ts';

let lab: NamedLab;
let daemon: Daemon;

beforeAll(async () => {
  lab = await NamedLab.start();
  daemon = await startDaemon(lab.kept.host, '--interval', '2');
  await lab.awaitNowhere(daemon);
});

afterAll(() => lab?.office.lab.stop());

describe('a pass every two seconds', () => {
  it('38: follows the name of a peer that has never answered', () =>
    injecting(38, async (row) => {
      const losses = await expectUnharmed({ ...lab, daemon }, async () => {
        const mark = daemon.mark();
        row.injected('another address, of a peer without a handshake');
        await lab.publish(lab.first);
        await lab.awaitMove(daemon, lab.first, mark, () => row.detected());
        row.repaired();
      });
      row.lost(losses);
    }));

  it('42: does nothing about a peer that flaps', () =>
    injecting(42, async (row) => {
      const { first, second, kept } = lab;
      const losses = await expectUnharmed({ ...lab, daemon }, async () => {
        const mark = daemon.mark();
        row.injected('its link is cut three times, and it is rebooted');
        for (let turn = 0; turn < 3; turn += 1) {
          await first.host.uplink.cut();
          expect(await kept.host.ping(first.joined.address)).toMatchObject({ received: 0 });
          if (turn === 0) row.detected();
          // This name does not exist, and so is resolved after every pass.
          await lab.publish();
          await lab.awaitQuestion(second);
          await first.host.uplink.restore();
          await eventually('it answers', () => lab.works(first));
        }
        await first.host.reboot();
        await first.host.cpn(['up']);
        await eventually('it reaches the host', () => answers(first.host, kept.joined.address));
        await eventually('it answers', () => lab.works(first));
        row.repaired();
        expect(findActs(daemon, mark)).toEqual([]);
      });
      row.lost(losses);
    }));

  it.each([
    ['edited', "echo '# edited' >>", 'update', 'the text differs'],
    ['deleted', 'rm', 'add', 'the file is not there'],
  ])('52: sees that the wg-quick file was %s', async (how, script, action, reason) => {
    const file = join(lab.kept.host.configDir, 'cpn0.conf');
    const before = await readFile(file, 'utf8');
    await repairing(
      52,
      { ...lab, daemon },
      {
        how,
        script: `${script} ${file}`,
        changes: [`${action} file ${file}: ${reason}`],
        works: async () => (await readFile(file, 'utf8')) === before,
      },
    );
  });
});
