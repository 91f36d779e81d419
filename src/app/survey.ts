import type { Actual } from '../core/actual.ts';
import { added, type Change, updated } from '../core/change.ts';
import type { Prefix } from '../core/cidr.ts';
import { type Desired, desire, type Intent } from '../core/desired.ts';
import { NotOurs } from '../core/errors.ts';
import { tableOf, withoutTool } from '../core/firewall.ts';
import type { HostForwarding } from '../core/forward/ingress.ts';
import { linksToward } from '../core/forward/ways.ts';
import { isDefaultRoute, markedSourceKey } from '../core/full-tunnel.ts';
import { type Ground, sameGround } from '../core/guard.ts';
import type { PublicKey } from '../core/keys.ts';
import {
  allForwardingKey,
  commonFilterKey,
  forwardingKey,
  isPlainLinkName,
  sourceFilterKey,
} from '../core/link-sysctl.ts';
import type { NetworkMap, Peer, TunnelConfig } from '../core/model.ts';
import { findMoved } from '../core/moved-peers.ts';
import { findOwnPeer } from '../core/own-peer.ts';
import { perObject } from '../core/per-object.ts';
import { isOurFirewall, isOurs, plan } from '../core/plan.ts';
import { assignedRoutes } from '../core/route-owner.ts';
import type { Step } from '../core/step.ts';
import { renderConfig } from '../core/wg-quick/render.ts';
import type { Question } from '../host/host.ts';
import type { Joined, State } from '../store/state.ts';
import { gatherGround } from './ground.ts';
import { labelNetwork } from './label-network.ts';
import { noteSaved, parseSaved } from './saved-config.ts';
import { isJoined } from './select.ts';
import { secondsNow, type Tools } from './tools.ts';

/** What a network of this host should be, what it is, and the way from the one to the other. Nothing has changed yet. */
export interface Survey {
  readonly state: Joined;
  /** False when the network's map has this host no more: then nobody is to be reached, and the key pair is kept. */
  readonly listed: boolean;
  readonly desired: Desired;
  readonly actual: Actual;
  readonly steps: readonly Step[];
  /** Peers to which the network gives another endpoint than the one that was applied last. */
  readonly moved: ReadonlySet<PublicKey>;
  /** The last-known-good wg-quick file; null where there is none, or one that cpn would not write. */
  readonly saved: TunnelConfig | null;
  /** The text that it should have. */
  readonly config: string;
  /** Everything that differs, the file's text included. */
  readonly changes: readonly Change[];
}

/** Optional inputs of a survey. */
export interface SurveyOptions {
  /** What a look of a moment ago saw, for the same question; without it, it looks itself. */
  readonly seen?: Actual | undefined;
  /** Prefixes that `--allow-route` named before, and no longer does. */
  readonly disallowed?: readonly Prefix[];
  /** What was applied last, where that is not what the wg-quick file says. */
  readonly applied?: TunnelConfig;
}

/** Looks at the host and plans a pass from what is known; asks neither a control plane nor a resolver. */
export async function survey(
  tools: Tools,
  state: Joined,
  { seen, disallowed = [], applied }: SurveyOptions = {},
): Promise<Survey> {
  const { self, map, listed } = findSelf(state);
  const actual = seen && isWhole(seen, state) ? seen : await tools.host.observe(questionOf(state));
  const { states } = await tools.store.list();
  const text = await tools.store.readConfig(state.interface);
  const saved = parseSaved(state.interface, text);
  const ground = await gatherGround(tools, state, actual, states, { saved, disallowed });
  const { interface: link, keyPair, networkSecret, options, resolved, failed, labels, pathMtu } = state;
  const label = options.hosts ? await labelNetwork(tools, state) : null;
  const forwarding = describeForwarding(state, actual, states);
  const desired = desireOnce(
    state,
    { link, map, self, keyPair, networkSecret, options, resolved, failed, label, labels, forwarding, pathMtu },
    ground,
  );
  if (!isOwnLink(state, desired.alias, actual)) {
    throw new NotOurs('the interface', link, 'remove it, or leave this network');
  }
  if (!isOurFirewall(actual, state.receipt)) {
    const table = `inet ${tableOf(link)}`;
    throw new NotOurs(
      'the nft table',
      table,
      `type: nft delete table ${table}, or join again with another --interface`,
    );
  }
  const moved = findMoved(desired.config, applied ?? saved, { map, resolved });
  const steps = plan(desired, actual, secondsNow(tools), moved);
  const config = textOf(desired.config);
  if (text === config) noteSaved(link, config, desired.config);
  const changes = [...planFile(tools, link, text, config), ...steps.flatMap((step) => step.changes)];
  return { state, listed, desired, actual, steps, moved, saved, config, changes };
}

/** What a state was last reckoned to ask of the host, and with what around it; the same of both asks the same. */
const reckoned = new WeakMap<
  Joined,
  { readonly label: string | null; readonly ground: Ground; readonly forwarding: string; readonly desired: Desired }
>();
const textOf = perObject((config: TunnelConfig) => renderConfig(config));

function desireOnce(state: Joined, intent: Intent, ground: Ground): Desired {
  const known = reckoned.get(state);
  const forwarding = JSON.stringify(intent.forwarding);
  const isKnown = known?.label === intent.label && known.forwarding === forwarding && sameGround(known.ground, ground);
  if (isKnown) return known.desired;
  const desired = desire(intent, ground);
  reckoned.set(state, { label: intent.label, ground, forwarding, desired });
  return desired;
}

/** Gathers what of this host's forwarding the packet rules of a network follow from. */
function describeForwarding(state: Joined, actual: Actual, states: readonly State[]): HostForwarding {
  return {
    sysctls: actual.sysctls,
    receipt: state.receipt.filter((entry) => entry.made === 'sysctl'),
    others: states
      .filter((other) => other.interface !== state.interface)
      .map((other) => ({ link: other.interface, isConnector: isForwarder(other) })),
    hasNft: !actual.firewall?.includes(withoutTool),
  };
}

/** True of a network that is up, or is to be, and forwards packets. */
export function isForwarder(state: State): state is Joined {
  return state.enabled && isJoined(state) && state.enrollment.type === 'connector';
}

/** True when an interface of our name is one that we made; while the keys change, it may have either of them. */
export function isOwnLink({ keyPair, rotation, receipt }: State, alias: string, actual: Actual): boolean {
  const pairs = rotation === null ? [keyPair] : [keyPair, rotation.keyPair];
  return pairs.some((each) => isOurs({ alias, keyPair: each }, actual, receipt));
}

/** What must be observed of the host for this network. */
export function questionOf(state: State): Question {
  const { enrollment, receipt, interface: link } = state;
  const isConnector = enrollment.type === 'connector';
  const hasRules = receipt.some((entry) => entry.made === 'firewall');
  const mayTunnel = state.options.allowRoutes.some(isDefaultRoute);
  const made = state.receipt.flatMap((entry) => (entry.made === 'sysctl' ? [entry.key] : []));
  const sysctls = [
    allForwardingKey,
    forwardingKey(link),
    ...(isConnector ? [commonFilterKey, sourceFilterKey(link)] : []),
    ...(mayTunnel ? [markedSourceKey] : []),
    ...made,
  ];
  const hosts = state.options.hosts || state.receipt.some((entry) => entry.made === 'hosts');
  const firewall = isConnector || hasRules ? true : ('where this host forwards' as const);
  return { link, firewall, sysctls: [...new Set(sysctls)], served: servedBy(state), hosts };
}

/** True where news need nothing to be seen beside what was asked for before they came: the interface of a new route. */
function isWhole({ surroundings, sysctls }: Actual, state: Joined): boolean {
  const links = servedBy(state).flatMap((route) => linksToward(route, surroundings));
  return links.filter(isPlainLinkName).every((link) => forwardingKey(link) in sysctls);
}

/** The routes that this host is there to serve. */
function servedBy(state: State): readonly Prefix[] {
  const map = state.membership?.map;
  const self = map && findOwnPeer(map, state);
  return map && self ? assignedRoutes(map, self) : [];
}

function planFile(tools: Tools, link: string, present: string | null, config: string): Change[] {
  if (present === config) return [];
  const target = tools.store.configPath(link);
  // The file holds the private key: its text is never shown.
  if (present === null) return [added('file', target, 'wg-quick', 'the file is not there')];
  return [updated('file', target, 'wg-quick', 'wg-quick', 'the text differs')];
}

/** This host as the map has it; one that is not listed has its address still, and nobody around it. */
function findSelf(state: Joined): {
  self: Peer;
  map: NetworkMap;
  listed: boolean;
} {
  const { membership, keyPair, enrollment } = state;
  const { map, peer } = membership;
  const self = findOwnPeer(map, state);
  if (self) return { self, map, listed: true };
  const { type, endpoint } = enrollment;
  const outcast: Peer = { ...peer, type, endpoint, publicKey: keyPair.publicKey, routes: [], withdrawn: [] };
  return { self: outcast, map: { ...map, routes: [], peers: [outcast] }, listed: false };
}
