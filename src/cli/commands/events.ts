import { setTimeout as delay } from 'node:timers/promises';
import type { Event } from '../../api/admin-service.ts';
import { findOlderNewest, followEvents, readEvents, withPatience } from '../../app/inspect/events.ts';
import type { EventType } from '../../contract/event.ts';
import { type Unreachable, WrongUsage } from '../../core/errors/index.ts';
import { describeDetails, describeEvent } from '../../core/events/describe-event.ts';
import { type AdminOptions, findTheNetwork, openAdmin } from '../admin.ts';
import { exitCodes } from '../exit-code.ts';
import { apiFlags, wideFlag } from '../input/flags.ts';
import { type Input, parseChoice } from '../input/input.ts';
import { note, print, printableCell, printJson, table, toJsonLine, warn } from '../output/output.ts';
import { untilInterrupted } from '../output/terminal/redraw.ts';
import type { Command } from '../parse/command.ts';

const usualLimit = 50;
const maxLimit = 10_000;
/** The maximum, because a flag may have ten digits. */
const maxId = 9_999_999_999;

const eventTypes = [
  'peer.enrolled',
  'peer.awaiting_approval',
  'peer.removed',
  'peer.online',
  'peer.offline',
  'route.failed_over',
  'route.dead',
  'route.restored',
  'relay.changed',
  'peer.cloned',
  'key.rotated',
  'pin.mismatch',
  'reconcile.failing',
  'reconcile.recovered',
  'network.updated',
  'network.deleted',
  'rules.changed',
  'rules.restored',
  'access.refused',
  'path.changed',
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
    ...wideFlag,
    json: {
      kind: 'switch',
      summary: 'print one JSON document on stdout, and nothing else; with --follow, one per line',
    },
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
    const wanted = { after, limit, types };
    if (follows) {
      const show = (event: Event) => print(isJson ? toJsonLine(event) : toLine(event));
      await untilInterrupted((signal) => follow(input, wanted, signal, show));
      return exitCodes.done;
    }
    const { found, newest } = await read(input, wanted);
    noteNewest(after, newest);
    if (isJson) {
      printJson({ events: found });
    } else if (found.length > 0) {
      const narrowing = input.switch('wide') ? null : { hide: ['what'] };
      print(table(['id', 'when', 'what', ''], found.map(toRow), narrowing));
      // A full page may have a successor.
      if (after !== undefined && found.length >= limit) note(`later events: --after ${found.at(-1)?.id}`);
    } else if (newest === null) {
      note(after === undefined ? 'there are no events' : `there are no events after ${after}`);
    }
    return exitCodes.done;
  },
};

interface EventFlags {
  readonly after: number | undefined;
  readonly limit: number;
  readonly types: readonly EventType[];
}

/** The requested events, and the newest event if it is older. */
async function read(input: Input, { after, ...wanted }: EventFlags, options: AdminOptions = {}) {
  const service = await openAdmin(input, options);
  if (!(await service.describes('network-events'))) {
    throw new WrongUsage('this control plane keeps no events; "cpn audit" shows what users did');
  }
  const network = await findTheNetwork(service, input.argument('network'));
  const found = await readEvents(service, network, { after, ...wanted });
  const newest = after !== undefined && found.length === 0 ? await findOlderNewest(service, network, after) : null;
  return { service, network, found, newest };
}

async function follow(
  input: Input,
  wanted: EventFlags,
  signal: AbortSignal,
  show: (event: Event) => void,
): Promise<void> {
  const { after, types } = wanted;
  const patience = {
    random: Math.random,
    sleep: (milliseconds: number) => delay(milliseconds, undefined, { signal }),
    onOutage: (error: Unreachable | null) => {
      if (error) warn(`${error.message}; retrying`);
      else note('connected to the control plane again');
    },
  };
  const start = () => read(input, wanted, { attempts: 1, signal });
  const { service, network, found, newest } = await withPatience(start, patience, ({ lasting }) => !lasting);
  noteNewest(after, newest);
  found.forEach(show);
  const last = found.at(-1) ?? newest ?? { id: after ?? 0 };
  for await (const event of followEvents(service, network, { ...patience, last, signal })) {
    if (types.length === 0 || types.some((type) => type === event.type)) show(event);
  }
}

function noteNewest(after: number | undefined, newest: Event | null): void {
  if (newest !== null) note(`there are no events after ${after}; the newest is ${newest.id}`);
}

function toRow(event: Event): string[] {
  return [String(event.id), event.at, event.type, describe(event)];
}

/** Peers and routes have their names. `network.updated` shows the network's new values. */
function describe({ type, peer, route, details }: Event): string {
  if (type === 'network.updated') return `the network changed: ${describeDetails(details)}`;
  const named = peer === null ? null : { id: peer.id, name: peer.name ?? `peer ${peer.id}` };
  return describeEvent({ type, peer: named, route, details } as Parameters<typeof describeEvent>[0]);
}

/** Formats an event without a table, because the widths of later events are unknown. */
function toLine(event: Event): string {
  const [id = '', at = '', type = '', ...rest] = toRow(event).map(printableCell);
  return [id, at, type.padEnd(longestType), ...rest].join('  ').trimEnd();
}

const longestType = Math.max(...eventTypes.map((type) => type.length));
