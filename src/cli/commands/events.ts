import { setTimeout as delay } from 'node:timers/promises';
import type { AdminService, Event } from '../../api/service.ts';
import { followEvents, readEvents } from '../../app/events.ts';
import type { EventType } from '../../contract/event.ts';
import { WrongUsage } from '../../core/errors/index.ts';
import type { Id } from '../../core/map/model.ts';
import { findTheNetwork, openAdmin } from '../admin.ts';
import { exitCodes } from '../exit-code.ts';
import { apiFlags } from '../input/flags.ts';
import { parseChoice } from '../input/input.ts';
import { note, print, printableCell, printJson, table, toJsonLine, warn } from '../output/output.ts';
import { untilInterrupted } from '../output/until-interrupted.ts';
import type { Command } from '../parse/command.ts';

const usualLimit = 50;
const maxLimit = 10_000;
/** Of the ten digits that a flag may have. */
const maxId = 9_999_999_999;

const eventTypes = [
  'peer.enrolled',
  'peer.removed',
  'peer.online',
  'peer.offline',
  'route.failed_over',
  'route.dead',
  'route.restored',
  'key.rotated',
  'pin.mismatch',
  'reconcile.failing',
  'reconcile.recovered',
  'network.updated',
] as const satisfies readonly EventType[];

export const events: Command = {
  name: 'events',
  // Completion offers nothing: the networks are those of the control plane.
  argument: {
    usage: '[network]',
    summary: 'id or name of a network; default: the only one',
    choices: { network: [] },
  },
  summary: 'Show what happened in a network, oldest first',
  flags: {
    ...apiFlags,
    json: { kind: 'switch', summary: 'print one JSON document on stdout, and nothing else; with --follow, one a line' },
    follow: { kind: 'switch', summary: 'print new events as they come, until interrupted' },
    limit: { kind: 'text', value: '1..10000', summary: 'number of events', byDefault: String(usualLimit) },
    after: { kind: 'text', value: 'ID', summary: 'only events after this one; default: the newest ones' },
    type: { kind: 'list', value: 'TYPE', summary: 'only events of this type', byDefault: 'all', choices: eventTypes },
  },
  examples: [
    'cpn events office',
    'cpn events office --follow --json',
    'cpn events office --type peer.offline --type route.dead',
  ],
  async run(input) {
    const after = input.number('after', 0, maxId);
    const types = input.list('type').map((text) => parseChoice('--type', text, eventTypes));
    const [isJson, follows] = [input.switch('json'), input.switch('follow')];
    const limit = input.number('limit', 1, maxLimit) ?? usualLimit;
    const service = await openAdmin(input);
    if (!(await service.describes('network-events'))) {
      throw new WrongUsage('this control plane keeps no events; "cpn audit" shows what users did');
    }
    const network = await findTheNetwork(service, input.argument('network'));
    const found = await readEvents(service, network, { after, limit, types });
    if (follows) {
      await untilInterrupted(async (signal) => {
        const show = (event: Event) => print(isJson ? toJsonLine(event) : toLine(event));
        found.forEach(show);
        for await (const event of follow(service, network, found.at(-1) ?? { id: after ?? 0 }, signal)) {
          if (types.length === 0 || types.some((type) => type === event.type)) show(event);
        }
      });
    } else if (isJson) {
      printJson({ events: found });
    } else if (found.length === 0) {
      note(after === undefined ? 'there are no events' : `there are no events after ${after}`);
    } else {
      print(table(['id', 'when', 'what', 'peer', 'route', ''], found.map(toRow)));
      // A page that is full may have another after it.
      if (after !== undefined && found.length >= limit) note(`later events: --after ${found.at(-1)?.id}`);
    }
    return exitCodes.done;
  },
};

function follow(service: AdminService, network: Id, last: Pick<Event, 'id'> & Partial<Event>, signal: AbortSignal) {
  return followEvents(service, network, {
    ...{ last, signal, random: Math.random },
    sleep: (milliseconds) => delay(milliseconds, undefined, { signal }),
    onOutage: (error) => {
      if (error) warn(`${error.message}; retrying`);
      else note('connected to the control plane again');
    },
  });
}

function toRow({ id, at, type, peer, route, details }: Event): string[] {
  const facts = Object.entries(details).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  const who = peer && [peer.name, ...(peer.id === null ? [] : [`(${peer.id})`])].join(' ').trim();
  return [String(id), at, type, who ?? '-', route ?? '-', facts.join(', ')];
}

/** A row of no table: the width of what comes is not known. */
function toLine(event: Event): string {
  const [id = '', at = '', type = '', ...rest] = toRow(event).map(printableCell);
  return [id, at, type.padEnd(longestType), ...rest].join('  ').trimEnd();
}

const longestType = Math.max(...eventTypes.map((type) => type.length));
