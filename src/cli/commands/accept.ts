import type { PinnedPeer } from '../../app/networks/accept.ts';
import type { PassReport } from '../../app/networks/pass-report.ts';
import { printable } from '../../core/errors/index.ts';
import type { KnownPeer } from '../../core/pins/match-pins.ts';
import type { PinMismatch } from '../../core/pins/pin-mismatch.ts';
import { openTools } from '../context.ts';
import { exitCodeOf, exitCodes } from '../exit-code.ts';
import { confirm } from '../input/confirm.ts';
import { jsonFlag, yesFlag } from '../input/flags.ts';
import { green, note, printError, printJson, table, warn } from '../output/output.ts';
import type { Command } from '../parse/command.ts';

export const accept: Command = {
  name: 'accept',
  argument: {
    usage: '<peer> [network]',
    summary: {
      peer: 'id, address or name of a peer',
      network: 'interface, or id or name of a network; needed if the peer is in several',
    },
  },
  summary: 'Accept the changed key or address of a peer',
  flags: { ...jsonFlag, ...yesFlag },
  examples: ['cpn accept edge-1', 'cpn accept 10.77.0.7 office --yes'],
  async run(input) {
    const { acceptPeer, findPeer } = await import('../../app/networks/accept.ts');
    const tools = await openTools(input);
    await tools.host.check({ firewall: false });
    const peer = await findPeer(tools, input.argument('peer') ?? '', input.argument('network'));
    const { name, mismatch, interface: link } = peer;
    if (mismatch === null) {
      if (input.switch('json')) printJson(describe(peer, []));
      note(`nothing to accept: ${printable(name)} matches its pin in ${link}`);
      return exitCodes.done;
    }
    note(compare(mismatch));
    if (!(await confirm(`Accept the new key and address of ${name} in ${link}?`, input))) return exitCodes.failed;
    const reports = await acceptPeer(tools, peer);
    if (input.switch('json')) printJson(describe(peer, reports));
    else note(`${green('accepted')}: ${printable(name)} is pinned in ${link} with its new key and address`);
    return judge(reports);
  },
};

/** The pinned and the received values, one below the other. */
function compare({ pin, claimed }: PinMismatch): string {
  const row = (title: string, { publicKey, address, peer, identity }: KnownPeer) => [
    title,
    publicKey,
    address,
    String(peer),
    identity ?? '-',
  ];
  return table(['', 'key', 'address', 'id', 'identity'], [row('pinned', pin), row('claimed', claimed)]);
}

function describe({ interface: link, id, name, mismatch }: PinnedPeer, reports: readonly PassReport[]) {
  return {
    interface: link,
    peer: { id, name },
    accepted: mismatch !== null,
    ...(mismatch && { public_key: mismatch.claimed.publicKey, address: mismatch.claimed.address }),
    changes: reports.flatMap(({ changes }) => changes),
  };
}

/** The mismatch is accepted even if the pass fails. The next pass applies it. */
function judge(reports: readonly PassReport[]): number {
  for (const { interface: link, failure, unsynced } of reports) {
    if (unsynced) warn(`${link} uses the stored map: ${unsynced.message}`);
    if (failure) printError(failure);
  }
  const [failure] = reports.flatMap((report) => report.failure ?? []);
  return failure ? exitCodeOf(failure) : exitCodes.done;
}
