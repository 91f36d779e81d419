import { findGone } from '../../../core/health/lan-routes.ts';
import type { Prefix } from '../../../core/net/cidr.ts';
import { catalogue } from '../../../core/problems/problem.ts';
import type { HostEvent } from '../../../host/host.ts';
import { updateLanRoutes } from '../../lan/lan-routes.ts';
import type { Pass } from '../../reconcile/pass.ts';
import type { Tools } from '../../tools.ts';
import type { PassListener } from '../pass-listener.ts';

/** Seconds that the path to a LAN must be back, so that a flapping link serves no route. */
const settling = 5;

/** Follows a connector's paths to its LANs. Logs each loss and each return. */
export class LanRouteListener implements PassListener {
  readonly #tools: Tools;
  readonly #link: string;
  readonly #trigger: (inMs: number) => void;
  readonly #dropped: () => ReadonlyMap<Prefix, string>;
  #since: ReadonlyMap<string, number> = new Map();
  #links: ReadonlySet<string> = new Set();

  /**
   * @param trigger starts a pass after so many milliseconds
   * @param dropped the routes whose packets another program drops, each with the reason
   */
  constructor(tools: Tools, link: string, trigger: (inMs: number) => void, dropped: () => ReadonlyMap<Prefix, string>) {
    this.#dropped = dropped;
    this.#tools = tools;
    this.#link = link;
    this.#trigger = trigger;
  }

  /** Urgent: an interface on a present or former path to a LAN changed. */
  onEvent({ link }: HostEvent): boolean {
    return link !== null && this.#links.has(link);
  }

  async onPass({ evaluation }: Pass): Promise<void> {
    if (evaluation === null) return;
    const { log } = this.#tools;
    const known = { settling, since: this.#since, dropped: this.#dropped() };
    const { before, lanRoutes, since, routes } = await updateLanRoutes(this.#tools, evaluation, known);
    this.#since = since;
    this.#links = new Set(Object.values(lanRoutes).flatMap(({ links }) => links));
    const wasGone = findGone(before, routes);
    const gone = findGone(lanRoutes, routes);
    for (const route of routes) {
      const facts = { interface: this.#link, route };
      const reason = lanRoutes[route]?.gone;
      if (gone.includes(route) && !wasGone.includes(route)) {
        log.warn({ ...facts, reason }, catalogue['lan-unreachable'].title);
      } else if (wasGone.includes(route) && !gone.includes(route)) {
        log.info(facts, 'the path to the LAN behind a route is back');
      }
    }
    if (since.size > 0) this.#trigger(1000 * settling);
  }
}
