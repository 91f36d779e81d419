import type { Enrolled } from '../../api/service.ts';
import { proveEnrollment, proveKeyAt } from '../../core/crypto/identity.ts';
import type { Secret } from '../../core/crypto/secret.ts';
import { InvalidValue, Refused, Unreachable, WrongUsage } from '../../core/errors/index.ts';
import type { Feature } from '../../core/map/features.ts';
import type { Id } from '../../core/map/model.ts';
import { listedAs } from '../../core/map/own-peer.ts';
import type { Joined, State } from '../../store/state/state.ts';
import { deleteReplaced } from '../networks/former-networks.ts';
import { withMembership } from '../pins.ts';
import { deleteState } from '../reconcile/cleanup.ts';
import { ownTag } from '../report-secret.ts';
import type { Tools } from '../tools.ts';
import { isRemoved } from './check-membership.ts';
import type { JoinRequest } from './join-request.ts';
import { describePossibleMove, findOtherNetworks } from './moved-networks.ts';
import { findRejoinable, rejoinLeft, rejoinRemoved } from './rejoin.ts';
import { describeExisting, type EnrolledNetwork, resolveConflicts } from './resolve-conflicts.ts';

/** Enrols a host and saves the membership. Deletes new keys that are certainly not enrolled. */
export async function enrollHost(
  tools: Tools,
  pending: State,
  request: JoinRequest,
  others: readonly Joined[],
  isNew: boolean,
): Promise<EnrolledNetwork> {
  try {
    const { state, reply } = await enrollAsMember(tools, pending, request, others);
    const { peer, map, accessToken, text } = reply;
    const membership = { peer, map, accessToken, personalToken: null, ...(text && { text }) };
    const joined = withMembership({ ...state, perhapsEnrolled: false }, membership);
    await tools.store.write(joined);
    const resolved = await resolveConflicts(tools, joined, others, request, true);
    const enrolled = { ...resolved, state: await deleteReplaced(tools, resolved.state) };
    const sync = { mode: 'poll', lastSuccess: tools.now().toISOString(), error: null, refused: null } as const;
    await tools.store.amendNotes(enrolled.state.interface, { sync, held: null });
    return enrolled;
  } catch (error) {
    if (isNew && isNotEnrolled(error)) await deleteState(tools, pending);
    throw error;
  }
}

interface EnrollmentResult {
  /** The state with the name, options and identity of the enrolment request. */
  readonly state: State;
  readonly reply: Enrolled;
}

/**
 * Enrols a host that may already be a member.
 *
 * A service that describes `Current-Networks` refuses a key for a network that this host is in, and
 * the key stays unused. If the host was removed from that network, or left it while the service was
 * unreachable, it enrols as the same peer again. A service that describes `Current-Peers` also
 * refuses the key if this host joined the network at another address of the control plane.
 *
 * @throws WrongUsage if the host is still in the network, and deletes the state of the join; also
 *   if an earlier enrolment may have been carried out, and the join is unattended
 */
async function enrollAsMember(
  tools: Tools,
  pending: State,
  request: JoinRequest,
  others: readonly Joined[],
): Promise<EnrollmentResult> {
  refuseRepeatedEnrollment(tools, pending, request);
  const joined = others.flatMap(({ membership: { map } }) => map.id ?? []);
  const left = await findRejoinable(tools, pending, joined);
  // With networks that the host left, a refusal shows which identity the key needs.
  const current = [...joined, ...left.map(({ network }) => network.id)];
  const tryEnroll = async (state: State, former?: Id | null): Promise<EnrollmentResult | null> => {
    const without = former === undefined ? current : current.filter((id) => id !== former);
    const reply = await enrollUnlessMember(tools, state, request.token, without);
    return reply && { state, reply };
  };
  let result = await tryEnroll(pending);
  for (const former of others) {
    if (result !== null) return result;
    if (!(await isRemoved(tools, former))) continue;
    result = await tryEnroll(await rejoinRemoved(tools, pending, former, request), former.membership.map.id);
  }
  for (const former of left) {
    if (result !== null) return result;
    result = await tryEnroll(await rejoinLeft(tools, pending, former, request), former.network.id);
  }
  if (result !== null) return result;
  await deleteState(tools, pending);
  const [only, ...more] = others;
  if (only && more.length === 0) throw new WrongUsage(describeExisting(only));
  const links = others.map((other) => other.interface).join(', ');
  throw new WrongUsage(
    `this host is in the network of this key already, as one of ${links}; leave that network first with "cpn leave"`,
  );
}

/**
 * Enrols once. Unless the service is idempotent, the state records a possible enrolment meanwhile.
 *
 * @param current the networks that this host is in
 * @returns null if the key is for one of these; the key stays unused
 */
async function enrollUnlessMember(
  tools: Pick<Tools, 'store' | 'connect' | 'progress'>,
  state: State,
  token: Secret,
  current: readonly Id[],
): Promise<Enrolled | null> {
  const { name, type, endpoint, idempotencyKey } = state.enrollment;
  const { publicKey } = state.keyPair;
  const mayRepeat = !state.perhapsEnrolled && !describes(state, 'enroll-idempotently');
  const currentNetworks = describes(state, 'enroll-current-networks') ? current : [];
  const isCompared = describes(state, 'enroll-current-peers');
  const elsewhere = isCompared ? (await findOtherNetworks(tools, state)).elsewhere : [];
  if (mayRepeat) await tools.store.write({ ...state, perhapsEnrolled: true });
  try {
    tools.progress(`enrolling ${name} at ${state.service.url}`);
    const service = await tools.connect(state);
    const secretTag = ownTag(state);
    const currentPeers = elsewhere.flatMap(listedAs);
    const proofs = { ...identify(state), ...(secretTag !== null && { secretTag }), currentNetworks, currentPeers };
    return await service.enroll({
      ...{ token, name, type, publicKey, endpoint, idempotencyKey, ...proofs },
      followsRelay: true,
    });
  } catch (error) {
    if (mayRepeat && !mayBeEnrolled(error)) await tools.store.write(state);
    if (elsewhere.length > 0 && error instanceof Refused && error.status === 412) {
      await deleteState(tools, state);
      throw new WrongUsage(describePossibleMove(elsewhere, state));
    }
    if (currentNetworks.length > 0 && error instanceof Refused && error.status === 409) return null;
    throw error;
  }
}

/**
 * The identity and its proofs. A key other than the identity's first one needs a separate proof.
 */
function identify({ identity, keyPair: { publicKey }, keySerial, enrollment: { tokenHash } }: State) {
  if (identity === null) return {};
  const identityProof = proveEnrollment(identity, { publicKey, tokenHash });
  const keyProof = keySerial > 0 && proveKeyAt(identity, publicKey, keySerial);
  return { identity: identity.key, identityProof, ...(keyProof && { keyProof }) };
}

function describes({ features }: State, feature: Feature): boolean {
  return features?.includes(feature) === true;
}

/**
 * Warns that an earlier enrolment may have been carried out without this host receiving the reply.
 *
 * @throws WrongUsage if the join is unattended: only a user may spend a further use of the key
 */
function refuseRepeatedEnrollment(tools: Pick<Tools, 'warn'>, state: State, { isUnattended }: JoinRequest): void {
  const { service, interface: link, perhapsEnrolled } = state;
  if (!perhapsEnrolled) return;
  const problem = `an earlier enrolment of ${link} at ${service.url} may have been carried out, and its reply was lost`;
  const next = `type "cpn join" with the same key, which takes a further use of it; or "cpn leave ${link}", and join with a new key`;
  if (isUnattended) throw new WrongUsage(`${problem}; ${next}`);
  tools.warn(`${problem}; this one takes a further use of the key`);
}

function mayBeEnrolled(error: unknown): boolean {
  if (error instanceof Unreachable) return error.perhapsDone;
  return !(error instanceof Refused || error instanceof InvalidValue);
}

/** True if the service certainly has no peer with these keys, also from an earlier attempt. */
function isNotEnrolled(error: unknown): boolean {
  if (error instanceof Refused) return !error.repeated;
  return error instanceof InvalidValue || (error instanceof Unreachable && !error.delivered);
}
