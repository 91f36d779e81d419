import type { JoinReport } from '../../app/join/join.ts';
import { findApprovalProblem } from '../../app/problems/find-problems.ts';
import { printable } from '../../core/errors/index.ts';
import { findOwnPeer, findWaiting } from '../../core/map/own-peer.ts';
import { problem, toSentence } from '../../core/problems/problem.ts';
import type { Joined } from '../../store/state/state.ts';
import { readDaemon } from '../context.ts';
import type { Input } from '../input/input.ts';
import { bold, dim, green, note, print, printJson, warn, yellow } from './output.ts';

export function showJoin(report: JoinReport, json: boolean): void {
  const { state, handshake } = report;
  if (json) {
    printJson(toJson(state, handshake === true));
    for (const each of findApprovalProblem(state)) warn(toSentence(each));
    for (const each of describeSecrets(report)) warn(each);
    warnOfEndpoint(state);
    return;
  }
  print(`${green('joined')} ${describeMembership(state)}`);
  const { name } = state.membership.peer;
  if (name !== state.enrollment.name) {
    note(`the name ${printable(state.enrollment.name)} is taken in this network; this host is ${printable(name)}`);
  }
  const [waiting] = findApprovalProblem(state);
  if (waiting !== undefined) warn(toSentence(waiting));
  else note(describeHandshake(report));
  warnOfEndpoint(state);
}

/** Hosts without an endpoint, such as laptops, cannot reach a connector without one. */
function warnOfEndpoint(state: Joined): void {
  const { enrollment, membership, interface: link } = state;
  if (enrollment.type !== 'connector' || findOwnPeer(membership.map, state)?.endpoint !== null) return;
  warn(`this connector has no endpoint, so hosts behind NAT cannot dial it: cpn set ${link} --endpoint HOST:PORT`);
}

export function showEarlier(state: Joined, json: boolean): void {
  if (json) printJson(toJson(state, false));
  else print(`${green('already joined')} ${describeMembership(state)}`);
}

/** Suggests `ping` only for a peer that replied, and `cpn run` only if no daemon runs. */
export async function suggestNext({ state, answered }: JoinReport, isKept: boolean, input: Input): Promise<string> {
  const { interface: link } = state;
  const rows: [string, string][] = [[`cpn status ${link}`, 'peers, routes and drift']];
  if (answered === null) rows.push([`cpn wait ${link} --for handshake`, 'returns after the first handshake']);
  else rows.push([`ping ${answered.address}`, printable(answered.name)]);
  if (!isKept && !(await isDaemonAtWork(input))) rows.push(['cpn run', 'reconciles the network while it runs']);
  const width = Math.max(...rows.map(([command]) => command.length));
  const lines = rows.map(([command, what]) => `  ${command.padEnd(width)}  ${dim(what)}`);
  return [dim('next:'), ...lines].join('\n');
}

async function isDaemonAtWork(input: Input): Promise<boolean> {
  return (await readDaemon(input))?.alive === true;
}

function toJson(state: Joined, handshake: boolean) {
  const { membership, interface: link, keyPair } = state;
  const { map, peer } = membership;
  const waiting = findWaiting(state);
  return {
    interface: link,
    address: peer.address,
    network: { id: map.id, name: map.name },
    peer: { id: peer.id, name: peer.name },
    public_key: keyPair.publicKey,
    handshake,
    ...(waiting && { awaiting_approval: waiting.since, fingerprint: waiting.fingerprint }),
  };
}

function describeMembership({ membership: { map, peer }, interface: link }: Joined): string {
  return `${bold(printable(map.name))} as ${printable(peer.name)}: ${link} has ${bold(peer.address)}`;
}

function describeSecrets({ state: { interface: link }, secretMismatches }: JoinReport): string[] {
  return secretMismatches.map((each) => toSentence(problem('secret-mismatch', { interface: link, ...each })));
}

function describeHandshake(report: JoinReport): string {
  const { handshake, answered, secretMismatches } = report;
  const { interface: link } = report.state;
  if (handshake === true) return `${answered === null ? 'a peer' : printable(answered.name)} answered`;
  if (secretMismatches.length > 0) {
    return `${yellow('no peer answered yet')}: ${describeSecrets(report).join('; ')}`;
  }
  if (handshake === null) return 'no peer of this network has an endpoint to dial yet';
  return `${yellow('no peer answered yet')}; peers add this host at their next pass; see "cpn status ${link}"`;
}
