import { inspect } from 'node:util';
import { describe, expect, test, vi } from 'vitest';
import { makePeer, newKeyPair, newPresharedKey } from './samples.ts';
import { configure, hide, question, startTunnel } from './steps.ts';

vi.setConfig({ testTimeout: 60_000 });

describe('secrets', () => {
  test('are in no argument, no environment and no error of a child', async () => {
    await using machine = await startTunnel();
    await machine.sh(`cp $(command -v wg) /run/real-wg
      printf '#!/bin/sh\\n{ tr "\\\\0" "\\\\n" </proc/$$/environ; tr "\\\\0" "\\\\n" </proc/$$/cmdline; } >>/run/seen; exec /run/real-wg "$@"\\n' >/run/wg
      chmod +x /run/wg; ${hide('wg', '/run/wg')}`);
    const self = newKeyPair();
    const peer = makePeer({ presharedKey: newPresharedKey() });
    await machine.host.apply(configure({ privateKey: self.privateKey, peers: [peer] }));
    const actual = await machine.host.observe(question);
    expect(actual.device).toMatchObject({
      publicKey: self.publicKey,
      peers: [{ presharedKey: peer.presharedKey }],
    });
    const printed = [JSON.stringify(actual), inspect(actual, { depth: 9, showHidden: true }), `${peer.presharedKey}`];
    for (const text of printed) {
      expect(text).toContain('[secret]');
      expect(text).not.toContain(peer.presharedKey?.reveal());
    }

    const seen = await machine.sh('cat /run/seen');
    const lines = [...new Set(seen.trim().split('\n'))];
    expect(lines.filter((line) => line.includes('=')).sort()).toEqual([
      'LC_ALL=C',
      'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    ]);
    expect(lines).toEqual(expect.arrayContaining(['addconf', '/dev/stdin', 'show', 'dump']));
    for (const secret of [self.privateKey, peer.presharedKey]) expect(seen).not.toContain(secret?.reveal());
  });

  test('are redacted in the error output of a tool', async () => {
    await using machine = await startTunnel();
    await machine.sh(`printf '#!/bin/sh\\necho "Line unrecognized: $(tr -d " " | tr "\\\\n" ";")" >&2; exit 1\\n' >/run/wg
      chmod +x /run/wg; ${hide('wg', '/run/wg')}`);
    const self = newKeyPair();
    const error = await machine.host
      .apply(configure({ privateKey: self.privateKey }))
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: 'CommandFailed', message: expect.stringContaining('PrivateKey=[secret]') });
    expect(JSON.stringify([error, String(error)])).not.toContain(self.privateKey.reveal().slice(0, 20));
  });
});
