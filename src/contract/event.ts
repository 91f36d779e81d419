import * as z from 'zod';
import { identifier, instant, nameShown } from './text.ts';

export const EventType = z
  .enum([
    'peer.enrolled',
    'peer.awaiting_approval',
    'peer.removed',
    'peer.online',
    'peer.offline',
    'peer.cloned',
    'route.failed_over',
    'route.dead',
    'route.restored',
    'relay.changed',
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
  ])
  .meta({ id: 'EventType' });
export type EventType = z.infer<typeof EventType>;

/** An event in a network. Actions of users are in the audit log. */
export const Event = z
  .object({
    id: identifier,
    at: instant,
    type: EventType,
    network: identifier,
    peer: z
      .object({ id: identifier, name: nameShown })
      .nullable()
      .meta({ description: 'The peer that it is about, as it was called then.' }),
    route: z.cidrv4().nullable().meta({ description: 'The route that it is about.' }),
    details: z.record(z.string(), z.unknown()).meta({ description: 'More facts, never a secret.' }),
  })
  .meta({ id: 'Event' });
export type Event = z.infer<typeof Event>;
