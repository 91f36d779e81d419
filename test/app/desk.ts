import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import type {
  Enrolled,
  EnrollmentRequest,
  MapReading,
  PeerDescription,
  PeerService,
  ServiceDescription,
  Wait,
} from '../../src/api/service.ts';
import { noMeter } from '../../src/app/meter.ts';
import type { ConnectOptions, KnownService, Tools } from '../../src/app/tools.ts';
import type { Report } from '../../src/contract/health.ts';
import type { KeyProof } from '../../src/core/crypto/identity.ts';
import type { PublicKey } from '../../src/core/crypto/keys.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { CommandFailed } from '../../src/core/errors/index.ts';
import type { ForeignDrops } from '../../src/core/forward/foreign/foreign-drops.ts';
import type { Reachability } from '../../src/core/health/compose-report.ts';
import type { Actual, ActualPeer, SshClient } from '../../src/core/host-state/actual.ts';
import type { KernelRoute } from '../../src/core/host-state/kernel-route.ts';
import type { PortState } from '../../src/core/host-state/open-port.ts';
import { features } from '../../src/core/map/features.ts';
import type { NetworkMap, Peer, PeerId } from '../../src/core/map/model.ts';
import type { Address, Prefix } from '../../src/core/net/cidr.ts';
import type { Step } from '../../src/core/reconcile/step.ts';
import type { Host, ResolvedTarget } from '../../src/host/host.ts';
import { fileStore } from '../../src/store/file-store.ts';
import type { Joined } from '../../src/store/state/state.ts';
import { address, bare, keyPair, network, options, peer } from '../core/samples.ts';
import { simulate } from '../core/simulate.ts';
import { memory } from '../lab/memory.ts';

/** One reply to a request for the map. The desk uses them in order, and repeats the last one. */
export type Answer = (revision: string | null, wait: Wait | undefined) => MapReading | Promise<MapReading>;

function unexpected(): never {
  throw new Error('unexpected call');
}

/** A host of one network, in memory except for its files. Its clock advances only during sleep. */
export class Desk {
  actual: Actual = bare;
  sshClients: readonly SshClient[] = [];
  /** How often the SSH sessions were read. */
  sessionReads = 0;
  /** All steps that were applied to the host, in order. */
  readonly steps: Step[] = [];
  /** The number of observations. */
  observations = 0;
  /** The number of observations that read WireGuard alone. */
  deviceLooks = 0;
  /** The requests for the map. */
  readonly asked: {
    readonly revision: string | null;
    /** The map that a reply with changes alone may build on. */
    readonly base: NetworkMap | null;
    readonly wait: Wait | undefined;
  }[] = [];
  answers: Answer[] = [];
  /** The options of the last client of the control plane. */
  patience: ConnectOptions | undefined;
  /** The service that the last client was created for. */
  known: KnownService | undefined;
  /** Describes the service; a request with a signal waits until that aborts. */
  describesItself: (etag: string | null, signal: AbortSignal | undefined) => Promise<ServiceDescription | null> = (
    _,
    signal,
  ) =>
    new Promise((resolve, reject) => {
      if (signal === undefined) resolve({ features, etag: null });
      else signal.addEventListener('abort', () => reject(signal.reason));
    });
  /** The records of the resolver. */
  names: Record<string, readonly Address[]> = {};
  readonly resolved: string[] = [];
  /** The UDP ports that another program uses. */
  readonly takenPorts = new Set<number>();
  /** The addresses in the tunnel that accept TCP connections. */
  readonly alive = new Set<string>();
  /** Addresses of connectors that answer that they serve nothing. */
  readonly closed = new Set<string>();
  /** Whether an echo of this size, headers included, gets a reply. */
  echoes: (address: Address, bytes: number, mark?: number) => boolean | Promise<boolean> = () => false;
  /** The MTU for echoes to an address, where it exceeds that of the interface. */
  readonly wide = new Map<Address, number>();
  /** Whether the probe of a host in the LAN succeeds. */
  reaches: (target: ResolvedTarget) => boolean | Promise<boolean> = () => false;
  readonly logged: { readonly level: string; readonly facts: object; readonly message: string }[] = [];
  /** The withdrawn prefixes that the control plane received, in order. */
  readonly withdrawn: (readonly Prefix[])[] = [];
  /** Throws the refusal of the control plane. */
  withdraws: (prefixes: readonly Prefix[]) => unknown = () => {};
  /** The tags that the control plane received, in order. */
  readonly announced: (string | null)[] = [];
  /** Whether the control plane supports tags; throws its refusal. */
  announces: (tag: string | null) => boolean | Promise<boolean> = () => true;
  /** The user whose program listens at a loopback address. */
  listens: Tools['findListeningUser'] = async () => null;
  /** The keys that the control plane accepted for this host, in order. */
  readonly registered: { readonly publicKey: PublicKey; readonly proof: KeyProof | null }[] = [];
  /** Whether the control plane supports a change of the key; throws its refusal. */
  registers: (publicKey: PublicKey) => boolean | Promise<boolean> = () => true;
  /** The descriptions of this host that the control plane received, in order. */
  readonly described: PeerDescription[] = [];
  /** Throws the refusal of the control plane. */
  describes: (description: PeerDescription) => unknown = () => {};
  /** The reports that the control plane received, in order. */
  readonly reports: Report[] = [];
  /** The signal that ends the last report. */
  ending: AbortSignal | undefined;
  /** The reply to a report; throws the refusal of the control plane. */
  replies: (report: Report) => Reachability | Promise<Reachability> = () => ({ reachableBy: 1, witnesses: 1 });
  /** The reply to an enrolment. */
  enrols: (request: EnrollmentRequest) => Enrolled = unexpected;
  /** The kernel's route to an address. */
  routes: (destination: Address) => KernelRoute = unexpected;
  /** The effect of a datagram into the tunnel. */
  onHandshakeTrigger: (address: Address) => void = unexpected;
  /** The source address of this host for a destination; null without a route. */
  sourceAddressTo: (destination: Address) => Address | null = (destination) =>
    address(destination.includes(':') ? '2001:db8::fe' : '192.0.2.254');
  /** Whether the control plane removes this host; gets the token of the request. */
  removes: (token: Secret) => boolean = unexpected;
  /** The states of ports that firewall programs report. */
  ports: PortState[] = [];
  /** The drops by packet rules of other programs. */
  drops: ForeignDrops = { forward: [], inbound: null };
  /** Whether the host refuses a step. */
  refuses: (step: Step) => boolean = () => false;
  /** Replaces a signal: aborts with {@link Interrupted}. */
  interrupting = new AbortController();
  seconds = 1_000;
  readonly tools: Tools & { readonly host: Required<Host> };

  private constructor(folder: string) {
    const log = (level: string) => (facts: object, message: string) => void this.logged.push({ level, facts, message });
    this.tools = {
      host: this.#host(),
      store: fileStore({ config: join(folder, 'etc'), state: join(folder, 'state'), runtime: join(folder, 'run') }),
      connect: async (known, patience) => {
        this.patience = patience;
        this.known = known;
        return this.#service();
      },
      describe: async (_, etag, signal) => this.describesItself(etag, signal),
      findListeningUser: async (service, before) => this.listens(service, before),
      now: () => new Date(1_700_000_000_000 + this.seconds * 1000),
      uptime: () => this.seconds,
      monotonic: () => this.seconds,
      sleep: async (milliseconds, signal) => {
        if (!signal?.aborted) this.seconds += milliseconds / 1000;
        // As a real one does, it lets everything else go on.
        await setImmediate();
      },
      random: (bytes) => new Uint8Array(bytes),
      deferSignals: (work) => work(this.interrupting.signal),
      log: { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
      meter: noMeter,
      progress: () => {},
      warn: () => {},
    };
  }

  /** A desk with a state on disk that is not applied to the host yet. */
  static async with(state: Joined): Promise<Desk> {
    const desk = await Desk.empty();
    await desk.tools.store.write(state);
    return desk;
  }

  /** A desk of a host without a network. */
  static async empty(): Promise<Desk> {
    const folder = await mkdtemp(join(memory, 'cpn-desk-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    return new Desk(folder);
  }

  /** The one state that is on disk. */
  async state(): Promise<Joined> {
    return (await this.tools.store.read('cpn0')) as Joined;
  }

  /** Changes a peer in the WireGuard device. */
  touch(number: number, changes: Partial<ActualPeer>): void {
    const { device } = this.actual;
    if (device === null) throw new Error('there is no interface');
    const { publicKey } = keyPair(number);
    const peers = device.peers.map((each) => (each.publicKey === publicKey ? { ...each, ...changes } : each));
    this.actual = { ...this.actual, device: { ...device, peers } };
  }

  #host(): Required<Host> {
    return {
      check: async () => {},
      observe: async ({ previous: around = null }) => {
        if (around === null) this.observations += 1;
        else this.deviceLooks += 1;
        return around === null ? this.actual : { ...around, device: this.actual.device };
      },
      sshClients: async () => {
        this.sessionReads += 1;
        return this.sshClients;
      },
      device: async () => this.actual.device,
      apply: async (step) => {
        if (this.refuses(step)) throw new CommandFailed(step.do, 1, 'no');
        this.steps.push(step);
        this.actual = simulate(this.actual, [step]);
      },
      resolve: async (name) => {
        this.resolved.push(name);
        return this.names[name] ?? [];
      },
      isTcpReachable: async (address) => this.alive.has(address),
      probeConnector: async (address, deadline) => {
        const answers = await this.tools.host.isTcpReachable(address, deadline);
        return this.closed.has(address) ? 'closed' : answers ? 'open' : 'silent';
      },
      answersQuery: async (resolver) => this.alive.has(resolver),
      probe: async (target) => this.reaches(target),
      probeSize: async (address, { bytes, count, mark }) => {
        const own = address.startsWith('10.77.') ? (this.actual.link?.mtu ?? 0) : 1500;
        const largest = this.wide.get(address) ?? own;
        for (let sent = 0; sent < count; sent += 1) {
          if ((await this.echoes(address, bytes, mark)) && bytes <= largest) return true;
        }
        return false;
      },
      raiseProbeMtu: async (_, addresses, mtu) => {
        for (const address of addresses) this.wide.set(address, mtu);
        return async () => this.wide.clear();
      },
      triggerHandshake: async (address) => this.onHandshakeTrigger(address),
      portStates: async (_, port) => this.ports.filter(({ at }) => at.port === port),
      foreignDrops: async () => this.drops,
      conflictingProcesses: async () => ['NetworkManager (pid 7)'],
      links: async () => new Set(this.actual.link === null ? [] : [this.actual.link.name]),
      route: async (destination) => this.routes(destination),
      sourceAddress: async (destination) => this.sourceAddressTo(destination),
      isPortFree: async (port) => !this.takenPorts.has(port),
      watch: unexpected,
      watchFirewall: unexpected,
      watchDevices: unexpected,
    };
  }

  #service(): PeerService {
    return {
      enroll: async (request) => this.enrols(request),
      announceSecret: async (_network, _peer, _token, tag) => {
        const isKnown = await this.announces(tag);
        this.announced.push(tag);
        return isKnown;
      },
      changeKey: async (_network, _peer, _token, publicKey, proof) => {
        const isKnown = await this.registers(publicKey);
        if (isKnown) this.registered.push({ publicKey, proof });
        return isKnown;
      },
      describePeer: async (_network, _peer, _token, description) => {
        await this.describes(description);
        this.described.push(description);
      },
      removePeer: async (_network, _peer, token) => this.removes(token),
      report: async (_network, _peer, _token, report, signal) => {
        this.ending = signal;
        const reply = await this.replies(report);
        this.reports.push(report);
        return reply;
      },
      withdraw: async (_network, _peer, _token, prefixes) => {
        await this.withdraws(prefixes);
        this.withdrawn.push(prefixes);
      },
      readMap: async (_network, _token, known, wait) => {
        const base = typeof known === 'string' ? null : known;
        const revision = base === null ? (known as string | null) : base.revision;
        this.asked.push({ revision, base, wait });
        const answer = this.answers.length > 1 ? this.answers.shift() : this.answers[0];
        if (!answer) throw new Error('the test prepared no answer');
        return answer(revision, wait);
      },
    };
  }
}

/** This host, number 1, as its network lists it; it has an endpoint. */
export const self: Peer = peer(1);

/** The state of this host, joined to the network of `map`. */
export function joinedTo(map: NetworkMap, changes: Partial<Joined> = {}): Joined {
  return {
    interface: 'cpn0',
    createdAt: '2026-01-01T00:00:00.000Z',
    keyPair: keyPair(1),
    keySince: '2026-01-01T00:00:00.000Z',
    keySerial: 0,
    identity: null,
    rotation: null,
    networkSecret: null,
    service: { url: 'https://203.0.113.99', insecureHttp: false },
    features,
    perhapsEnrolled: false,
    enrollment: { idempotencyKey: 'x', tokenHash: 'y', name: 'peer-1', type: 'origin', endpoint: null },
    membership: {
      peer: { id: 1, name: 'peer-1', address: self.address },
      accessToken: new Secret('cpp_x'),
      personalToken: null,
      map,
    },
    options,
    enabled: true,
    resolved: {},
    refused: null,
    failed: [],
    pathMtu: null,
    drained: false,
    openPorts: [],
    pins: [],
    labels: [],
    keptOutside: [],
    tunnelledResolvers: [],
    receipt: [],
    ...changes,
  };
}

export const nonceOfMaps = 'q83vEjRWeJq8';

/** A map with these peers and this host, at a revision. */
export function mapAt(revision: string | null, peers: readonly Peer[], changes: Partial<NetworkMap> = {}): NetworkMap {
  return network([self, ...peers], { revision, nonce: nonceOfMaps, ...changes });
}

/** The service answers with this map, or that the given revision is current. */
export function answerWith(map: NetworkMap, waited = false): Answer {
  return (revision) => ({ map: map.revision !== null && map.revision === revision ? null : map, waited });
}

/** The service answers with this map, and states that these peers are gone. */
export function answerRemoving(map: NetworkMap, removed: readonly PeerId[]): Answer {
  return () => ({ map, removed, waited: false });
}

/** The service fails. */
export function fail(error: unknown): Answer {
  return () => {
    throw error;
  };
}
