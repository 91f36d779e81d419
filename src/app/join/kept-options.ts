import type { Secret } from '../../core/crypto/secret.ts';
import type { Options } from '../../core/map/options.ts';
import type { Endpoint } from '../../core/net/endpoint.ts';
import type { State } from '../../store/state/state.ts';

/** The settings that a host keeps when it joins a network again, unless they are given. */
export type NamedOptions = keyof Options | 'name' | 'type' | 'endpoint' | 'networkSecret' | 'proxy' | 'authorities';

interface RequestedOptions {
  readonly options: Options;
  readonly networkSecret: Secret | null;
  readonly named: ReadonlySet<NamedOptions>;
}

/**
 * Returns the settings of an earlier join, except those that are given now. A listen port that came
 * from the endpoint follows `endpoint`, which is this host's endpoint from now on.
 */
export function keepOptions(
  { options, enrollment, networkSecret }: Pick<State, 'options' | 'enrollment' | 'networkSecret'>,
  { named, options: asked, networkSecret: secret }: RequestedOptions,
  endpoint: Endpoint | null,
): Pick<State, 'options' | 'networkSecret'> {
  const given = Object.entries(asked).filter(([name]) => named.has(name as keyof Options));
  const isFollowing = options.listenPort === (enrollment.endpoint?.port ?? null);
  const kept: Options = { ...options, ...(isFollowing && { listenPort: null }), ...Object.fromEntries(given) };
  return { options: fixPort(kept, endpoint), networkSecret: named.has('networkSecret') ? secret : networkSecret };
}

/** Listens on the endpoint's port unless a port is given: a router may map one to the other. */
export function fixPort(options: Options, endpoint: Endpoint | null): Options {
  return { ...options, listenPort: options.listenPort ?? endpoint?.port ?? null };
}
