import { updated } from '../core/change.ts';
import { formatEndpoint } from '../core/endpoint.ts';
import { CannotTell, CpnError, NotJoined, NotKept, WrongUsage } from '../core/errors.ts';
import type { Step } from '../core/step.ts';
import type { Joined } from '../store/state.ts';
import { accessOf } from './access.ts';
import { apply, findUnloaded, save, withoutRules } from './apply.ts';
import { applyTentatively, areRisky, type Confirming, isAnswered, throwIfInterrupted } from './confirm.ts';
import { withExtensions } from './described.ts';
import { findDisallowed, type OptionChanges, type Settled, settleEndpoint, withChanges } from './option-changes.ts';
import { usualConfirmation } from './pass.ts';
import { type PassReport, reconcileNetworks } from './reconcile.ts';
import { resolveNames } from './resolve.ts';
import { refuseUnreadable, selectJoined } from './select.ts';
import { type Survey, survey } from './survey.ts';
import { tellSecret } from './tell-secret.ts';
import type { Tools } from './tools.ts';

/** What changing the options would change on the host; neither the host nor the control plane hears of it. */
export async function planOptions(
  tools: Tools,
  network: string | undefined,
  changes: OptionChanges,
): Promise<PassReport> {
  const state = await selectOne(tools, network);
  const next = withChanges(state, await settleEndpoint(tools, state, changes));
  return report(state.interface, next.enabled ? (await surveyOptions(tools, next, state)).changes : []);
}

/** Surveys other options than those of `known`. A port that was chosen and is no longer is given back to the kernel. */
async function surveyOptions(tools: Tools, next: Joined, known: Joined): Promise<Survey> {
  const planned = await survey(tools, next, { disallowed: findDisallowed(known, next) });
  const { desired, actual, steps, changes } = planned;
  const before = actual.device?.listenPort ?? null;
  const isReleased = next.options.listenPort === null && before !== null && before === known.options.listenPort;
  if (!isReleased) return planned;
  const { link } = desired;
  const change = updated('interface', link, { 'listen port': before }, { 'listen port': 'any' }, 'no port is chosen');
  const release: Step = { do: 'configure-device', link, listenPort: 0, peers: [], changes: [change] };
  return { ...planned, steps: [...steps, release], changes: [...changes, change] };
}

/**
 * Changes what was decided for this host when it joined. What the network is told of it goes to the control plane first: a refusal
 * changes nothing here. A change of the host that could cut it off is taken back unless it is confirmed within `confirmMs`, and after a
 * signal; the control plane is told so.
 *
 * @throws NotKept and Interrupted when it was taken back
 */
export async function setOptions(
  tools: Tools,
  network: string | undefined,
  asked: OptionChanges,
  confirmMs = usualConfirmation,
): Promise<PassReport> {
  const chosen = await selectOne(tools, network);
  const { interface: link } = chosen;
  const changes = await settleEndpoint(tools, chosen, asked);
  const alone = <T>(work: () => Promise<T>) => tools.store.change(() => tools.store.lock(work));
  const { planned, isTold } = await alone(() =>
    tools.deferSignals(async (signal) => {
      const known = await selectOne(tools, link);
      // What cannot be is refused before anybody is told.
      const next = withChanges(known, changes);
      const located: Joined = { ...next, resolved: await resolveNames(tools, next) };
      throwIfInterrupted(signal);
      const isTold = await tellService(tools, known, changes);
      try {
        throwIfInterrupted(signal);
        return { isTold, planned: await applyOptions(tools, located, known, { withinMs: confirmMs, signal }) };
      } catch (error) {
        if (isTold) await tellFormer(tools, known, changes);
        throw error;
      }
    }),
  );
  const state = await selectOne(tools, link);
  // What probes told that are no more would otherwise hold for ever.
  if (changes.dropProbes.length > 0) await tools.store.amendNotes(link, { dead: [], probed: {} });
  if (changes.networkSecret !== undefined) {
    const untold = await tellSecret(tools, state);
    if (untold !== null && untold !== 'unknown') tools.warn(untold.message);
  }
  warnOfPort(tools, chosen, state);
  const later = isTold && state.enabled ? await readMap(tools, link) : [];
  const unloaded = planned && (await findUnloaded(tools, planned));
  return { ...report(link, [...withoutRules(planned?.changes ?? [], unloaded), ...later]), failure: unloaded };
}

/** Says that the other peers go on dialling a port that is no longer listened on; one that a router forwards was another before too. */
function warnOfPort(tools: Tools, known: Joined, { options: { listenPort }, enrollment: { endpoint } }: Joined): void {
  if (endpoint === null || listenPort === null || listenPort === endpoint.port) return;
  if (known.options.listenPort !== endpoint.port) return;
  const { interface: link } = known;
  const remedy = `unless a router forwards one to the other, "cpn set ${link} --endpoint ${endpoint.host}:${listenPort}" puts it right`;
  tools.warn(`peers dial ${formatEndpoint(endpoint)}, and ${link} listens on ${listenPort} now; ${remedy}`);
}

/** Keeps the options only where the host could be changed with them, and who answered before answers. */
async function applyOptions(
  tools: Tools,
  located: Joined,
  known: Joined,
  confirming: Confirming,
): Promise<Survey | null> {
  if (!located.enabled) {
    await tools.store.write(located);
    return null;
  }
  const planned = await surveyOptions(tools, located, known);
  const isRisky = areRisky(planned.changes);
  const isJudged = isRisky && (await isAnswered(tools, planned));
  if (isRisky && !isJudged) {
    tools.warn('neither the control plane nor a peer answers now, so that nobody can confirm the change; it is kept');
  }
  if (!isJudged) {
    await save(tools, await apply(tools, planned, known), known, planned);
    return planned;
  }
  const { state, isKept } = await applyTentatively(tools, planned, known, confirming);
  if (!isKept) throw new NotKept(known.interface, confirming.withinMs);
  await save(tools, state, known, planned);
  return planned;
}

/** The one network that is meant. */
async function selectOne(tools: Tools, network: string | undefined): Promise<Joined> {
  const { states, unreadable } = await selectJoined(tools, network);
  const [state, other] = states;
  if (state === undefined) {
    refuseUnreadable(unreadable);
    throw new NotJoined('this host has joined no network; "cpn join" joins one');
  }
  if (other === undefined) return state;
  throw new WrongUsage(`name one network; joined: ${states.map((each) => each.interface).join(', ')}`);
}

/** Returns whether there was anything to tell. */
async function tellService(
  tools: Tools,
  state: Joined,
  { name, endpoint }: Pick<Settled, 'name' | 'endpoint'>,
): Promise<boolean> {
  if (name === undefined && endpoint === undefined) return false;
  const access = accessOf(state);
  if (access === null) throw new CannotTell(state.service.url, 'it gave this host no token to do it with');
  tools.progress(`telling ${state.service.url}`);
  const told = { ...(name !== undefined && { name }), ...(endpoint !== undefined && { endpoint }) };
  await withExtensions(tools, state, { isLocked: true }, (service) =>
    service.describePeer(access.network, state.membership.peer.id, access.token, told),
  );
  return true;
}

/** Tells the network again what it knew before options that this host does not have after all. */
async function tellFormer(tools: Tools, { enrollment, membership, ...known }: Joined, told: Settled): Promise<void> {
  const former = {
    ...(told.name !== undefined && { name: membership.peer.name }),
    ...(told.endpoint !== undefined && { endpoint: enrollment.endpoint }),
  };
  try {
    await tellService(tools, { ...known, enrollment, membership }, former);
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    tools.warn(
      `the control plane still has the new name or endpoint of this host, and the host does not: ${error.message}`,
    );
  }
}

/** Lets this host know of itself what the others know; where no daemon does it, nobody else would. */
async function readMap(tools: Tools, link: string): Promise<PassReport['changes']> {
  const [pass] = await reconcileNetworks(tools, link);
  const error = pass?.failure ?? pass?.unsynced;
  if (error) tools.warn(error.message);
  return pass?.changes ?? [];
}

function report(link: string, changes: PassReport['changes']): PassReport {
  return { interface: link, changes, unsynced: null, failure: null };
}
