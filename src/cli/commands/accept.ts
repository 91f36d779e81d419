import type { Candidate } from '../../app/accept.ts';
import type { PassReport } from '../../app/reconcile.ts';
import type { Claim } from '../../core/claims.ts';
import { printable } from '../../core/errors.ts';
import type { Known } from '../../core/model.ts';
import { type Command, jsonFlag, yesFlag } from '../command.ts';
import { confirm } from '../confirm.ts';
import { openTools } from '../context.ts';
import { exitCodeOf, exitCodes } from '../exit-code.ts';
import { green, note, printError, printJson, table, warn } from '../output.ts';

export const accept: Command = {
  name: 'accept',
  argument: {
    usage: '<peer> [network]',
    summary:
      'id, address or name of a peer; an interface, or the id or name of a network, where the peer is in several',
  },
  summary: 'Accept that a peer has another key or address than it was known by',
  flags: { ...jsonFlag, ...yesFlag },
  examples: ['cpn accept edge-1', 'cpn accept 10.77.0.7 office --yes'],
  async run(input) {
    const { acceptPeer, findPeer } = await import('../../app/accept.ts');
    const tools = await openTools(input);
    await tools.host.check({ firewall: false });
    const peer = await findPeer(tools, input.argument('peer') ?? '', input.argument('network'));
    const { name, claim, interface: link } = peer;
    if (claim === null) {
      if (input.switch('json')) printJson(describe(peer, []));
      note(`there is nothing to accept: ${printable(name)} is the peer that ${link} knows`);
      return exitCodes.done;
    }
    note(compare(claim));
    if (!(await confirm(`Is this ${name} in ${link}?`, input))) return exitCodes.failed;
    const reports = await acceptPeer(tools, peer);
    if (input.switch('json')) printJson(describe(peer, reports));
    else note(`${green('accepted')}: ${printable(name)} is known in ${link} as it is said to be`);
    return judge(reports);
  },
};

/** What is known and what is claimed, one below the other. */
function compare({ pin, claimed }: Claim): string {
  const row = (title: string, { publicKey, address, peer, identity }: Known) => [
    title,
    publicKey,
    address,
    String(peer),
    identity ?? '-',
  ];
  return table(['', 'key', 'address', 'id', 'identity'], [row('known', pin), row('claimed', claimed)]);
}

function describe({ interface: link, id, name, claim }: Candidate, reports: readonly PassReport[]) {
  return {
    interface: link,
    peer: { id, name },
    accepted: claim !== null,
    ...(claim && { public_key: claim.claimed.publicKey, address: claim.claimed.address }),
    changes: reports.flatMap(({ changes }) => changes),
  };
}

/** The claim is accepted whatever became of the pass, which the next one catches up with. */
function judge(reports: readonly PassReport[]): number {
  for (const { interface: link, failure, unsynced } of reports) {
    if (unsynced) warn(`${link} goes by the last known map: ${unsynced.message}`);
    if (failure) printError(failure);
  }
  const [failure] = reports.flatMap((report) => report.failure ?? []);
  return failure ? exitCodeOf(failure) : exitCodes.done;
}
