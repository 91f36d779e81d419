import type { FastifyRequest } from 'fastify';
import { MethodNotAllowed } from '../errors.ts';
import type { App } from './app.ts';

/** The methods of the path of a request, as an Allow header lists them; empty where there is no such path. */
export type MethodsOf = (request: Pick<FastifyRequest, 'url'>) => readonly string[];

/** Refuses a request with a method that its path does not take. Sees the routes that are added from now on. */
export function refuseOtherMethods(app: App): MethodsOf {
  const methods = new Map<string, Set<string>>();
  app.addHook('onRoute', ({ url, method }) => {
    const known = methods.get(url) ?? new Set();
    methods.set(
      url,
      [method].flat().reduce((all, each) => all.add(each), known),
    );
  });
  const list = (template: string | undefined) =>
    template === undefined ? [] : [...(methods.get(template) ?? []), 'OPTIONS'].sort();
  const findTemplate = (path: string) =>
    methods.has(path) ? path : [...methods.keys()].find((each) => isOf(path, each));
  app.addHook('onRequest', async (request) => {
    const path = pathOf(request);
    // A path without parameters may stand where another route has one: /api/networks/enroll is no network.
    const allowed = request.is404 ? list(findTemplate(path)) : methods.has(path) ? list(path) : [];
    if (allowed.length > 0 && !allowed.includes(request.method)) throw new MethodNotAllowed(request.method, allowed);
  });
  return (request) => list(findTemplate(pathOf(request)));
}

function pathOf({ url }: Pick<FastifyRequest, 'url'>): string {
  return url.split('?', 1)[0] ?? url;
}

/** True where the path has the segments of the template, whatever stands for its parameters. */
function isOf(path: string, template: string): boolean {
  const [given, wanted] = [path.split('/'), template.split('/')];
  return (
    given.length === wanted.length && wanted.every((segment, index) => segment[0] === ':' || segment === given[index])
  );
}
