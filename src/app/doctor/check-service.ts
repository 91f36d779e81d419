import { checkAuthorities, checkServiceCertificate } from '../../core/doctor/check-certificate.ts';
import { checkOwnClock, checkServiceClock, type NotedInstant } from '../../core/doctor/check-clock.ts';
import { checkSync } from '../../core/doctor/check-sync.ts';
import { toFinding } from '../../core/doctor/describe-problems.ts';
import { type Finding, noteFinding, okFinding, problemFinding } from '../../core/doctor/finding.ts';
import { CpnError, ForeignListener, Intercepted, ProxyFailed, Refused, Unreachable } from '../../core/errors/index.ts';
import { addressesOf } from '../../core/names/resolved-names.ts';
import { proxyOf } from '../../core/net/proxy.ts';
import { isSocketAddress, socketPathOf } from '../../core/net/socket-path.ts';
import { describeServiceRoute, findServiceRoute } from '../../core/routing/tunnelled-connections.ts';
import { readAuthorities } from '../../core/tls/authority-file.ts';
import type { Joined } from '../../store/state/state.ts';
import { accessOf, findNoAccess } from '../access.ts';
import type { Evaluation } from '../reconcile/evaluate-network.ts';
import { locateApi, namesOf, resolveDeadline } from '../reconcile/names/resolve-names.ts';
import { secondsNow } from '../tools.ts';
import type { DoctorTools, NetworkCheck } from './examination.ts';

/** Milliseconds that a user waits at most. */
const deadline = 5_000;

/** The path to the control plane, its answers, and the resolver. Other checks run without them. */
export const serviceChecks: readonly NetworkCheck[] = [
  { subject: 'daemon', examine: (tools, { state }) => examineSync(tools, state) },
  { subject: 'api', examine: (tools, { state }) => examineService(tools, state) },
  { subject: 'api', examine: async (tools, { state }) => examineProxy(tools, state) },
  { subject: 'api', examine: async (tools, { state }) => examineAuthorities(tools, state) },
  { subject: 'api', examine: async (_, evaluation) => examinePath(evaluation) },
  { subject: 'clock', examine: async (tools, evaluation) => [await examineOwnClock(tools, evaluation)] },
  { subject: 'dns', examine: (tools, { state }) => examineNames(tools, state) },
];

async function examineSync(tools: DoctorTools, state: Joined): Promise<Finding[]> {
  if (accessOf(state) === null) return [];
  const { sync, daemonFailure } = await tools.store.readNotes(state.interface);
  const daemon = await tools.inspector.holder(`${tools.folders.runtime}/daemon.pid`);
  // The failure of a daemon that has ended is out of date.
  return checkSync(state.interface, { ...sync, daemonFailure: daemon?.alive ? daemonFailure : null });
}

function examineAuthorities(tools: DoctorTools, { interface: link, service }: Joined): Finding[] {
  return checkAuthorities(link, readAuthorities(service.authorities ?? []), secondsNow(tools));
}

async function examineService(tools: DoctorTools, state: Joined): Promise<Finding[]> {
  const { url } = state.service;
  const checked = `the control plane at ${url}`;
  const transport = describeTransport(url);
  try {
    const begun = tools.now().getTime() / 1000;
    const {
      date,
      tookMs,
      listener,
      certificates = [],
    } = await tools.probeService(state.service, deadline, state.resolved);
    const middle = begun + tookMs / 2000;
    const by = listener == null ? '' : `, from a program of ${listener}`;
    return [
      okFinding('api', checked, `answers within ${Math.ceil(tookMs)} ms, ${transport}${by}`),
      ...(listener === null ? [noteFinding('api', checked, unseenListener, httpsRemedy)] : []),
      ...checkServiceCertificate(url, certificates, middle),
      ...(date === null ? [] : [checkServiceClock(url, middle, date)]),
      ...(await examineToken(tools, state)),
    ];
  } catch (error) {
    if (!(error instanceof Unreachable)) throw error;
    if (error instanceof ForeignListener) {
      return [problemFinding('api', checked, `is not trusted: ${error.facts.problem}`, error.remedy ?? '')];
    }
    if (error instanceof Intercepted) {
      const problem = `${error.by} answers in its place: ${error.facts.problem}`;
      return [problemFinding('api', checked, problem, error.remedy ?? '')];
    }
    return [problemFinding('api', checked, `is unreachable: ${error.facts.problem}`, remedyOf(url, error))];
  }
}

function describeTransport(url: string): string {
  if (isSocketAddress(url)) return 'by a Unix socket';
  return url.startsWith('https:') ? 'by TLS with a trusted certificate' : 'without TLS';
}

const unseenListener =
  'is not checked: no socket of this network namespace listens there, so the user of its program is not visible';
const httpsRemedy = 'https, or a Unix socket: cpn control-plane serve --listen unix:PATH';

/** Reports the saved proxy, or else one that the environment names and cpn does not use. */
function examineProxy(tools: DoctorTools, { interface: link, service }: Joined): Finding[] {
  const checked = `the proxy of ${link}`;
  const proxy = proxyOf(service);
  if (proxy !== null)
    return [okFinding('api', checked, `${proxy.url}, saved from ${proxy.from}; the daemon uses it too`)];
  if (service.proxy !== undefined) return [];
  const named = tools.environmentProxy(service);
  if (named === null) return [];
  const found = `${named.from} names ${named.url}, which is not saved and not used: the connection is direct`;
  return [noteFinding('api', checked, found, `cpn set ${link} --proxy ${named.url}, or --proxy none`)];
}

/** A control plane, or the proxy to it, must not depend on a route of the network. */
function examinePath({ state, desired }: Evaluation): Finding[] {
  const route = findServiceRoute(desired, locateApi(state));
  if (!state.enabled || route === null) return [];
  const { interface: link, service } = state;
  const remedy = `cpn set ${link} --proxy URL or --api URL, with an address outside the routes of the network`;
  return [problemFinding('api', (proxyOf(service) ?? service).url, describeServiceRoute(route), remedy)];
}

function remedyOf(url: string, error: Unreachable): string {
  const { heard, remedy } = error;
  if (error instanceof ProxyFailed && remedy !== null) return `${remedy}; the tunnel stays as it is meanwhile`;
  const socket = socketPathOf(url);
  const curl = socket === null ? `curl -v ${url}` : `curl -v --unix-socket ${socket} http://localhost/`;
  if (!heard) return `${curl}; the tunnel stays as it is meanwhile`;
  return remedy ?? curl;
}

/** Reads the map of the host's own network. @throws Intercepted */
async function examineToken(tools: DoctorTools, state: Joined): Promise<Finding[]> {
  const { map } = state.membership;
  const checked = `this host's token for network ${map.name}`;
  const access = accessOf(state);
  if (access === null) return [findNoAccess(state) ?? []].flat().map((found) => toFinding(found, 'api', checked));
  try {
    const service = await tools.connect(state, { deadlineMs: deadline, attempts: 1 });
    await service.readMap(access.network, access.token, map.revision);
    return [okFinding('api', checked, 'is valid')];
  } catch (error) {
    if (!(error instanceof CpnError) || error instanceof Intercepted) throw error;
    // The problems already include the deletion, with its remedy.
    if (error instanceof Refused && [404, 410].includes(error.status) && state.deletion !== undefined)
      return [noteFinding('api', checked, 'is refused because the network was deleted')];
    // A suspended host needs no new key: the remedy of the 403 names who can resume it.
    if (error instanceof Refused && error.status === 403 && error.remedy !== null)
      return [problemFinding('api', checked, error.problem, error.remedy)];
    const remedy =
      error instanceof Refused
        ? 'ask an admin whether this host is still in the network; else cpn join with a new key'
        : 'try again later, and check the log of the control plane';
    return [problemFinding('api', checked, error.message, remedy)];
  }
}

async function examineOwnClock(tools: DoctorTools, { state, actual }: Evaluation): Promise<Finding> {
  const { sync } = await tools.store.readNotes(state.interface);
  const moments: NotedInstant[] = [
    { what: `the join of ${state.interface}`, at: Date.parse(state.createdAt) / 1000 },
    { what: `the key of ${state.interface}`, at: Date.parse(state.keySince) / 1000 },
    ...(sync.lastSuccess === null
      ? []
      : [{ what: `the last sync of ${state.interface}`, at: Date.parse(sync.lastSuccess) / 1000 }]),
    ...(actual.device?.peers ?? []).flatMap(({ publicKey, latestHandshake }) =>
      latestHandshake === null ? [] : [{ what: `the handshake with ${publicKey}`, at: latestHandshake }],
    ),
  ];
  return checkOwnClock(moments, secondsNow(tools));
}

async function examineNames(tools: DoctorTools, state: Joined): Promise<Finding[]> {
  const names = namesOf(state);
  return Promise.all(
    names.map(async (name) => {
      const checked = `the address of ${name}`;
      const addresses = await tools.host.resolve(name, resolveDeadline);
      if (addresses.length > 0) return okFinding('dns', checked, addresses.join(', '));
      const known = addressesOf(name, state.resolved);
      const isPlain = new URL(state.service.url).hostname === name && state.service.url.startsWith('http:');
      const used = isPlain ? 'is used until a resolver answers' : 'is used';
      const meanwhile = known.length === 0 ? '' : `; ${known.join(', ')} from an earlier query ${used}`;
      return problemFinding(
        'dns',
        checked,
        `no resolver has an address${meanwhile}`,
        `getent ahosts ${name}, and check /etc/resolv.conf`,
      );
    }),
  );
}
