import type { App } from './app.ts';

/** The methods of a path, as an Allow header lists them; empty where there is no such path. */
export type MethodsOf = (path: string) => readonly string[];

/** Collects the methods of the routes that are added from now on. */
export function collectMethods(app: App): MethodsOf {
  const methods = new Map<string, Set<string>>();
  app.addHook('onRoute', ({ url, method }) => {
    const known = methods.get(url) ?? new Set();
    methods.set(
      url,
      [method].flat().reduce((all, each) => all.add(each), known),
    );
  });
  return (path) => {
    const template = methods.has(path) ? path : [...methods.keys()].find((each) => isOf(path, each));
    return template === undefined ? [] : [...(methods.get(template) ?? []), 'OPTIONS'].sort();
  };
}

/** True where the path has the segments of the template, whatever stands for its parameters. */
function isOf(path: string, template: string): boolean {
  const [given, wanted] = [path.split('/'), template.split('/')];
  return (
    given.length === wanted.length && wanted.every((segment, index) => segment[0] === ':' || segment === given[index])
  );
}
