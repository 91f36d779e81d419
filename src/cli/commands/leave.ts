import { findDiallingDevices } from '../../app/lan/dialling-devices.ts';
import type { LeaveReport } from '../../app/leave/leave.ts';
import { describeState } from '../../app/select.ts';
import type { Tools } from '../../app/tools.ts';
import { printable, WrongUsage } from '../../core/errors/index.ts';
import { listNames } from '../../core/util/list-names.ts';
import type { FormerMembership } from '../../store/former-networks.ts';
import type { State } from '../../store/state/state.ts';
import { openTools } from '../context.ts';
import { disableIdleDaemon } from '../daemon/daemon-unit.ts';
import { exitCodes } from '../exit-code.ts';
import { confirmByName } from '../input/confirm.ts';
import { allFlag, jsonFlag, yesFlag } from '../input/flags.ts';
import type { Input } from '../input/input.ts';
import { noNetwork, note, printJson } from '../output/output.ts';
import { formerToJson } from '../output/show-status.ts';
import { type Command, oneNetworkArgument } from '../parse/command.ts';

export const leave: Command = {
  name: 'leave',
  argument: oneNetworkArgument,
  summary: 'Leave networks: take them down, deregister this host, and remove everything cpn created',
  flags: {
    ...jsonFlag,
    ...yesFlag,
    ...allFlag,
    verify: {
      kind: 'switch',
      summary: 'verify afterwards, and fail if anything is left except the file that is named',
    },
    'keep-peer': {
      kind: 'switch',
      summary:
        'for a copy of another host: leave the peer in its network, and remove its identity from this host alone',
    },
    forget: {
      kind: 'switch',
      summary: 'only drop what is stored of networks that were left while their control planes were unreachable',
    },
  },
  examples: ['cpn leave office --yes --verify', 'cpn leave office --keep-peer', 'cpn leave office --forget'],
  async run(input) {
    if (input.switch('forget')) return forget(input);
    const [
      { leaveNetworks, selectLeaving },
      { verifyLeft },
      { describeFormer, finishLeaving, listFormer, selectFormer },
      { describeSessionsAtStake },
    ] = await Promise.all([
      import('../../app/leave/leave.ts'),
      import('../../app/leave/leave.ts'),
      import('../../app/networks/former-networks.ts'),
      import('../../app/networks/tunnelled-sessions.ts'),
    ]);
    const tools = await openTools(input);
    await tools.host.check({ firewall: input.switch('verify') });
    const network = input.argument('network');
    const { states, unreadable } = await selectLeaving(tools, network, input.switch('all'));
    const links = states.map((state) => state.interface);
    const keepsPeer = input.switch('keep-peer');
    if (!keepsPeer && !input.switch('yes')) await refuseCloned(tools, links);
    const loss = keepsPeer
      ? 'The peer stays in the network.'
      : `The key pair is lost.${(await Promise.all(states.map((state) => describeDialling(tools, state)))).join('')}`;
    const sessions = input.switch('yes') ? null : await describeSessionsAtStake(tools, states);
    const question = `Leave ${states.map(describeState).join(', ')}? ${[loss, sessions ?? []].flat().join(' ')}`;
    if (links.length > 0 && !(await confirmByName(question, namesOf(states), input))) return exitCodes.failed;
    const earlier = selectFormer(await listFormer(tools), network);
    const verified: string[] = [];
    const reports = await leaveNetworks(tools, [...links, ...unreadable.map((each) => each.interface)], keepsPeer);
    if (input.switch('verify')) for (const link of links) verified.push(...(await verifyLeft(tools, link)));
    await finishLeaving(tools, earlier);
    const waiting = await listFormer(tools);
    const proof = input.switch('verify') ? { verified } : {};
    if (input.switch('json')) printJson({ networks: reports, ...proof, ...formerToJson(waiting) });
    else if (reports.length === 0 && earlier.length === 0) note(noNetwork);
    else for (const report of reports) note(describeLeft(report, tools));
    if (verified.length > 0 && !input.switch('json'))
      note(`verified: no ${[...new Set(verified)].join(', no ')} is left`);
    if (keepsPeer && !input.switch('json'))
      for (const state of states) for (const kept of describeKept(state)) note(kept);
    for (const each of selectFormer(waiting, network).filter((one) => isAmong(one, earlier)))
      tools.warn(describeFormer(each));
    if (reports.length > 0) await disableIdleDaemon(input, tools.store);
    return exitCodes.done;
  },
};

/** The texts that confirm leaving: a name of the only network, or `all`. */
function namesOf(states: readonly State[]): [string, ...string[]] {
  const [first, ...others] = states;
  if (first === undefined || others.length > 0) return ['all'];
  const { interface: link, membership } = first;
  return membership === null ? [link] : [membership.map.name, link, String(membership.map.id)];
}

async function describeDialling(tools: Pick<Tools, 'connect'>, state: State): Promise<string> {
  const names = await findDiallingDevices(tools, state);
  return names.length === 0
    ? ''
    : ` Devices that dial ${state.interface} alone (${listNames(names)}) lose the network.`;
}

/** @throws WrongUsage if another host shares the identity: it would lose the network too */
async function refuseCloned({ store }: Pick<Tools, 'store'>, links: readonly string[]): Promise<void> {
  for (const link of links) {
    if ((await store.readNotes(link)).sync.clonedSince === undefined) continue;
    throw new WrongUsage(
      `another host uses the identity of ${link}, and would lose its network too; "cpn leave ${link} --keep-peer" removes it from this host alone, --yes takes the peer out for both`,
    );
  }
}

function describeLeft({ interface: link, former }: LeaveReport, { store }: Pick<Tools, 'store'>): string {
  const rest = former ? `, except its identity and token in ${store.formerPath}` : '';
  return `left ${link}; removed everything cpn created for it${rest}`;
}

/** A peer without a host stays in the lists, and keeps its name and address. */
function describeKept({ membership }: State): string[] {
  if (membership === null) return [];
  const { map, peer } = membership;
  const remove = `"cpn peer remove ${map.id} ${peer.id}" removes it where no other host has its identity`;
  return [`peer ${peer.id} stays in network ${printable(map.name)}; ${remove}`];
}

function isAmong({ leftAt, interface: link }: FormerMembership, others: readonly FormerMembership[]): boolean {
  return others.some((other) => other.leftAt === leftAt && other.interface === link);
}

/** Drops the records of networks that were left. Joined networks stay. */
async function forget(input: Input): Promise<number> {
  const { deleteFormer } = await import('../../app/leave/forget-former.ts');
  const dropped = await deleteFormer(await openTools(input), input.argument('network'));
  if (input.switch('json')) printJson({ forgotten: formerToJson(dropped).former ?? [] });
  else if (dropped.length === 0) note('no networks that this host left are stored');
  for (const { network, peer } of input.switch('json') ? [] : dropped) {
    const stays = `${printable(peer.name)} remains a peer there until an admin types "cpn peer remove ${network.id} ${peer.id}"`;
    note(`dropped the stored identity of network ${printable(network.name)}; ${stays}`);
  }
  return exitCodes.done;
}
