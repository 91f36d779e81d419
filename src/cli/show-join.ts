import type { JoinReport } from '../app/join.ts';
import { describeTrouble } from '../core/compare-secrets.ts';
import { printable } from '../core/errors.ts';
import type { Joined } from '../store/state.ts';
import { readDaemon } from './context.ts';
import type { Input } from './input.ts';
import { bold, dim, green, note, print, printJson, warn, yellow } from './output.ts';

/** Shows what this host has joined, and whether somebody answered. */
export function showJoin(report: JoinReport, json: boolean): void {
  const { state, handshake, troubles } = report;
  if (json) {
    printJson(toJson(state, handshake === true));
    for (const trouble of troubles) warn(describeTrouble(trouble));
    return;
  }
  print(`${green('joined')} ${describeMembership(state)}`);
  const { name } = state.membership.peer;
  if (name !== state.enrollment.name) {
    note(
      `the network knows this host as ${printable(name)}, because names are unique there and ${printable(state.enrollment.name)} is taken`,
    );
  }
  note(describeHandshake(report));
}

/** Shows what it has joined before. */
export function showEarlier(state: Joined, json: boolean): void {
  if (json) printJson(toJson(state, false));
  else print(`${green('already joined')} ${describeMembership(state)}`);
}

/**
 * What a person types next, each only where it holds: whoever answered can be pinged, and a host that nothing keeps right needs its
 * daemon.
 */
export async function suggestNext({ state, answered }: JoinReport, isKept: boolean, input: Input): Promise<string> {
  const { interface: link } = state;
  const rows: [string, string][] = [[`cpn status ${link}`, 'peers, routes, and whether all is as it should be']];
  if (answered === null) rows.push([`cpn wait ${link} --for handshake`, 'returns when a peer answers']);
  else rows.push([`ping ${answered.address}`, printable(answered.name)]);
  if (!isKept && !(await isDaemonAtWork(input))) rows.push(['cpn run', 'keeps it right, for as long as it runs']);
  const width = Math.max(...rows.map(([command]) => command.length));
  const lines = rows.map(([command, what]) => `  ${command.padEnd(width)}  ${dim(what)}`);
  return [dim('next:'), ...lines].join('\n');
}

async function isDaemonAtWork(input: Input): Promise<boolean> {
  return (await readDaemon(input))?.alive === true;
}

function toJson({ membership: { map, peer }, interface: link, keyPair }: Joined, handshake: boolean) {
  return {
    interface: link,
    address: peer.address,
    network: { id: map.id, name: map.name },
    peer: { id: peer.id, name: peer.name },
    public_key: keyPair.publicKey,
    handshake,
  };
}

function describeMembership({ membership: { map, peer }, interface: link }: Joined): string {
  return `${bold(printable(map.name))} as ${printable(peer.name)}: ${link} has ${bold(peer.address)}`;
}

function describeHandshake({ state: { interface: link }, handshake, troubles }: JoinReport): string {
  if (handshake === true) return 'a peer answered';
  if (troubles.length > 0) {
    const why = troubles.map((trouble) => printable(describeTrouble(trouble)));
    return `${yellow('no peer answered yet')}: ${why.join('; ')}`;
  }
  if (handshake === null) return 'no peer of this network can be dialled from here yet';
  return `${yellow('no peer answered yet')}; they learn of this host at their next pass; see "cpn status ${link}"`;
}
