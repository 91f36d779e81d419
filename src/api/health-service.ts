import type { Id } from '../core/map/model.ts';
import { decodeEvents } from './decode/event.ts';
import { decodeHealth } from './decode/health.ts';
import { decodePending } from './decode/removal.ts';
import type { Call, Reply } from './http/attempt.ts';
import type { AdminService } from './service.ts';

type HealthService = Pick<AdminService, 'readHealth' | 'readRemovals' | 'readEvents'>;

const read = { method: 'GET', repeatable: true, answered: true } as const;

/** The part of the service that is about what hosts observe and what happened; `call` brings the bearer. */
export function healthService(
  call: (request: Call) => Promise<Reply>,
  describes: AdminService['describes'],
): HealthService {
  return {
    async readHealth(network) {
      if (!(await describes('network-health'))) return null;
      const what = `reading the health of network ${network}`;
      const { body, reading } = await call({ ...read, what, path: `${pathOf(network)}/health` });
      return decodeHealth(body, reading);
    },

    async readRemovals(network, waitSeconds) {
      if (!(await describes('network-removals'))) return null;
      const { body, reading } = await call({
        ...read,
        what: `reading which hosts of network ${network} applied a removal`,
        path: `${pathOf(network)}/removals`,
        ...(waitSeconds > 0 && { wait: { seconds: waitSeconds } }),
      });
      return decodePending(body, reading);
    },

    async readEvents(network, { after, limit, wait } = {}) {
      const query = new URLSearchParams();
      if (after !== undefined) query.set('after', String(after));
      if (limit !== undefined) query.set('limit', String(limit));
      const path = `${pathOf(network)}/events`;
      const { body, reading, waited } = await call({
        ...read,
        what: `reading the events of network ${network}`,
        path: query.size > 0 ? `${path}?${query}` : path,
        ...(wait && { wait, attempts: 1 }),
      });
      return { events: decodeEvents(body, reading), waited };
    },
  };
}

function pathOf(network: Id): string {
  return `/api/networks/${encodeURIComponent(network)}`;
}
