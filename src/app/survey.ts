import type { Actual } from '../core/actual.ts';
import { added, type Change, updated } from '../core/change.ts';
import { type Desired, desire, forwardingKey } from '../core/desired.ts';
import { NotJoined, NotOurs } from '../core/errors.ts';
import { isOurs, plan } from '../core/plan.ts';
import type { Step } from '../core/step.ts';
import { renderConfig } from '../core/wg-quick/render.ts';
import type { Question } from '../host/host.ts';
import type { Joined, State } from '../store/state.ts';
import { gatherGround } from './ground.ts';
import { secondsNow, type Tools } from './tools.ts';

/** What a network of this host should be, what it is, and the way from the one to the other. Nothing has changed yet. */
export interface Survey {
  readonly state: Joined;
  readonly desired: Desired;
  readonly actual: Actual;
  readonly steps: readonly Step[];
  /** The text that the wg-quick file should have. */
  readonly config: string;
  /** Everything that differs, the file's text included. */
  readonly changes: readonly Change[];
}

/** Looks at the host and plans a pass from what is known; asks no control plane. */
export async function survey(tools: Tools, state: Joined): Promise<Survey> {
  const self = state.membership.map.peers.find((peer) => peer.publicKey === state.keyPair.publicKey);
  if (!self) throw noLongerListed(state);
  const actual = await tools.host.observe(questionOf(state));
  const ground = await gatherGround(tools, state, actual.surroundings);
  const { map } = state.membership;
  const { interface: link, keyPair, options, resolved } = state;
  const desired = desire({ link, map, self, keyPair, options, resolved }, ground);
  if (!isOurs(desired, actual)) throw new NotOurs('the interface', link, 'remove it, or leave this network');
  const steps = plan(desired, actual, secondsNow(tools));
  const config = renderConfig(desired.config);
  const changes = [...(await planFile(tools, link, config)), ...steps.flatMap((step) => step.changes)];
  return { state, desired, actual, steps, config, changes };
}

/** What must be observed of the host for this network. */
export function questionOf(state: State): Question {
  const forwards = state.enrollment.type === 'connector' || state.receipt.some((entry) => entry.made === 'firewall');
  return { link: state.interface, firewall: forwards, sysctls: forwards ? [forwardingKey] : [] };
}

async function planFile(tools: Tools, link: string, config: string): Promise<Change[]> {
  const present = await tools.store.readConfig(link);
  if (present === config) return [];
  const target = tools.store.configPath(link);
  // The file holds the private key: its text is never shown.
  if (present === null) return [added('file', target, 'wg-quick', 'the file is not there')];
  return [updated('file', target, 'wg-quick', 'wg-quick', 'the text differs')];
}

function noLongerListed({ membership, service, interface: link }: Joined): NotJoined {
  const { map, peer } = membership;
  return new NotJoined(
    `${service.url} no longer lists this host (peer ${peer.id}) in network ${map.name}; the tunnel ${link} is left as it is; "cpn leave ${link}" removes it, "cpn join" with a new key joins again`,
    { facts: { network: map.id, peer: peer.id } },
  );
}
