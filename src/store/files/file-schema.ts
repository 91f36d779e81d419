import * as v from 'valibot';
import { Secret } from '../../core/crypto/secret.ts';
import { InvalidValue } from '../../core/errors/index.ts';
import { knownFeatures } from '../../core/map/features.ts';
import { parseProxy, revealProxy } from '../../core/net/proxy.ts';
import type { ServiceAddress } from '../../core/net/service-address.ts';

/**
 * Values that several of our files share. The schemas use valibot, because each command reads these
 * files: the contract's zod takes ten times as long to load and to build them.
 *
 * @module
 */
export const int = v.pipe(v.number(), v.safeInteger());
/** ISO 8601. */
export const instant = v.pipe(v.string(), v.isoTimestamp());
export const secret = v.pipe(
  v.string(),
  v.minLength(1),
  v.transform((text) => new Secret(text)),
);
export const peerId = v.union([v.number(), v.string()]);
const proxy = v.pipe(
  v.object({ url: v.string(), from: v.string() }),
  v.transform(({ url, from }) => parseProxy(url, from)),
);
export const serviceAddress = v.object({
  url: v.pipe(v.string(), v.url()),
  insecureHttp: v.boolean(),
  proxy: v.exactOptional(v.union([v.literal('none'), proxy])),
  listener: v.exactOptional(int),
  authorities: v.exactOptional(v.array(v.string())),
});
export const features = v.pipe(
  v.array(v.string()),
  v.transform((names) => knownFeatures(names)),
);

/** Has the proxy's credentials in clear. Older versions ignore proxy, listener and authorities. */
export function formatServiceAddress({ proxy, ...service }: ServiceAddress) {
  if (proxy === undefined || proxy === 'none') return { ...service, proxy };
  return { ...service, proxy: { url: revealProxy(proxy), from: proxy.from } };
}

/** Parses a value. The error names the first invalid field. @throws SyntaxError */
export function parseAs<Schema extends v.GenericSchema>(schema: Schema, value: unknown): v.InferOutput<Schema> {
  // Replaces messages of the library and of value parsers: they quote the value, which may be a
  // key.
  try {
    const { success, output, issues } = v.safeParse(schema, value, { abortEarly: true });
    if (success) return output;
    throw new SyntaxError(`${String(issues[0].path?.[0].key ?? 'it')} has an unexpected form`);
  } catch (error) {
    if (!(error instanceof InvalidValue)) throw error;
    throw new SyntaxError(`a field ${error.rule}`);
  }
}
