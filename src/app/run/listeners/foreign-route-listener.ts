import { type ForeignRoute, findForeignRoutes } from '../../../core/routing/own-routes.ts';
import type { Pass } from '../../reconcile/pass.ts';
import type { Tools } from '../../tools.ts';
import type { PassListener } from '../pass-listener.ts';

/** Logs the routes into our interface that another program made: each once when it appears and when it disappears. */
export class ForeignRouteListener implements PassListener {
  readonly #tools: Pick<Tools, 'log'>;
  readonly #link: string;
  #routes: ReadonlyMap<string, ForeignRoute> = new Map();

  constructor(tools: Pick<Tools, 'log'>, link: string) {
    this.#tools = tools;
    this.#link = link;
  }

  onPass({ evaluation }: Pass): void {
    if (evaluation === null) return;
    const before = this.#routes;
    this.#routes = new Map(
      findForeignRoutes(evaluation.desired, evaluation.actual).map((route) => [route.remedy, route]),
    );
    for (const [remedy, route] of this.#routes) {
      if (!before.has(remedy)) this.#log('warn', route, 'a route into the tunnel is not of this network');
    }
    for (const [remedy, route] of before) {
      if (!this.#routes.has(remedy)) this.#log('info', route, 'a route that was not of this network is gone');
    }
  }

  #log(level: 'info' | 'warn', { prefix, table, protocol, problem, remedy }: ForeignRoute, message: string): void {
    const facts = { interface: this.#link, route: prefix, table, protocol };
    this.#tools.log[level](level === 'info' ? facts : { ...facts, ...(problem && { problem }), remedy }, message);
  }
}
