import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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
import type { KnownService, Patience, Tools } from '../../src/app/tools.ts';
import type { Actual, ActualPeer } from '../../src/core/actual.ts';
import type { Address, Prefix } from '../../src/core/cidr.ts';
import { CommandFailed } from '../../src/core/errors.ts';
import { features } from '../../src/core/features.ts';
import type { ForwardDrop } from '../../src/core/forward/find-drops.ts';
import type { KeyProof } from '../../src/core/identity.ts';
import type { PublicKey } from '../../src/core/keys.ts';
import type { NetworkMap, Peer } from '../../src/core/model.ts';
import { Secret } from '../../src/core/secret.ts';
import type { Step } from '../../src/core/step.ts';
import type { Host, ProbeAt } from '../../src/host/host.ts';
import { fileStore } from '../../src/store/file-store.ts';
import type { Joined } from '../../src/store/state.ts';
import { bare, keyPair, network, options, peer } from '../core/samples.ts';
import { simulate } from '../core/simulate.ts';

/** What the control plane is asked for, and what it says: answers in their order, the last one for ever. */
export type Answer = (revision: string | null, wait: Wait | undefined) => MapReading | Promise<MapReading>;

/** A host of one network that exists in memory, but for its files; time goes on only while it sleeps. */
export class Desk {
  actual: Actual = bare;
  /** Everything that was done to the host, in order. */
  readonly steps: Step[] = [];
  /** How often the host was looked at. */
  looks = 0;
  /** The questions for the map. */
  readonly asked: {
    readonly revision: string | null;
    /** The map to which the changes alone would do. */
    readonly base: NetworkMap | null;
    readonly wait: Wait | undefined;
  }[] = [];
  answers: Answer[] = [];
  /** How patient the last client of the control plane was to be. */
  patience: Patience | undefined;
  /** What the last client of the control plane went by. */
  known: KnownService | undefined;
  /** Answers the wish for the description of the service; whoever follows it waits for ever. */
  describesItself: (etag: string | null, signal: AbortSignal | undefined) => Promise<ServiceDescription | null> = (
    _,
    signal,
  ) =>
    new Promise((resolve, reject) => {
      if (signal === undefined) resolve({ features, etag: null });
      else signal.addEventListener('abort', () => reject(signal.reason));
    });
  /** What the resolver knows. */
  names: Record<string, readonly Address[]> = {};
  readonly resolved: string[] = [];
  /** The UDP ports that another program has. */
  readonly takenPorts = new Set<number>();
  /** The addresses in the tunnel at which somebody answers. */
  readonly alive = new Set<string>();
  /** Whether an echo of this size, with all its headers, is answered. */
  echoes: (address: Address, bytes: number) => boolean | Promise<boolean> = () => false;
  /** The MTU that echoes to an address may have, where that is more than the interface's. */
  readonly wide = new Map<Address, number>();
  /** What a probe of a host in the LAN shows. */
  reaches: (target: ProbeAt) => boolean | Promise<boolean> = () => false;
  readonly logged: { readonly level: string; readonly facts: object; readonly message: string }[] = [];
  /** What the control plane was told to hold for withdrawn, in order. */
  readonly withdrawn: (readonly Prefix[])[] = [];
  /** Throws why the control plane does not take it. */
  withdraws: (prefixes: readonly Prefix[]) => unknown = () => {};
  /** The tags that the control plane was told, in order. */
  readonly announced: (string | null)[] = [];
  /** Whether the control plane knows of tags; throws why it does not take this one. */
  announces: (tag: string | null) => boolean | Promise<boolean> = () => true;
  /** The keys that the control plane took for this host, in order. */
  readonly registered: { readonly publicKey: PublicKey; readonly proof: KeyProof | null }[] = [];
  /** Whether the control plane knows how to change a key; throws why it does not take this one. */
  registers: (publicKey: PublicKey) => boolean | Promise<boolean> = () => true;
  /** What the control plane was told of this host, in order. */
  readonly described: PeerDescription[] = [];
  /** Throws why the control plane does not take it. */
  describes: (told: PeerDescription) => unknown = () => {};
  /** Answers an enrolment. */
  enrols: (request: EnrollmentRequest) => Enrolled = () => {
    throw new Error('nobody should ask for this');
  };
  /** What a datagram into the tunnel brings about. */
  nudged: (address: Address) => void = () => {
    throw new Error('nobody should ask for this');
  };
  /** Answers the wish to take this host out of its network, with the token that it came with. */
  removes: (token: Secret) => boolean = () => {
    throw new Error('nobody should ask for this');
  };
  /** Who drops what is to be forwarded. */
  drops: readonly ForwardDrop[] = [];
  /** Whether the host refuses a step. */
  refuses: (step: Step) => boolean = () => false;
  /** Aborts with {@link Interrupted} in the place of a signal. */
  interrupting = new AbortController();
  seconds = 1_000;
  readonly tools: Tools;

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
      now: () => new Date(1_700_000_000_000 + this.seconds * 1000),
      uptime: () => this.seconds,
      monotonic: () => this.seconds,
      sleep: async (milliseconds, signal) => {
        if (!signal?.aborted) this.seconds += milliseconds / 1000;
      },
      random: (bytes) => new Uint8Array(bytes),
      deferSignals: (work) => work(this.interrupting.signal),
      log: { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
      meter: noMeter,
      progress: () => {},
      warn: () => {},
    };
  }

  /** A desk on which a state lies; nothing of it is on the host yet. */
  static async with(state: Joined): Promise<Desk> {
    const desk = await Desk.empty();
    await desk.tools.store.write(state);
    return desk;
  }

  /** A desk of a host that has joined nothing. */
  static async empty(): Promise<Desk> {
    const folder = await mkdtemp(join(tmpdir(), 'cpn-desk-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    return new Desk(folder);
  }

  /** The one state that is on disk. */
  async state(): Promise<Joined> {
    return (await this.tools.store.read('cpn0')) as Joined;
  }

  /** Changes what WireGuard's own table says of a peer. */
  touch(number: number, changes: Partial<ActualPeer>): void {
    const { device } = this.actual;
    if (device === null) throw new Error('there is no interface');
    const { publicKey } = keyPair(number);
    const peers = device.peers.map((each) => (each.publicKey === publicKey ? { ...each, ...changes } : each));
    this.actual = { ...this.actual, device: { ...device, peers } };
  }

  #host(): Host {
    const unused = () => {
      throw new Error('nobody should ask for this');
    };
    return {
      check: async () => {},
      observe: async () => {
        this.looks += 1;
        return this.actual;
      },
      peers: async () => this.actual.device?.peers ?? [],
      apply: async (step) => {
        if (this.refuses(step)) throw new CommandFailed(step.do, 1, 'no');
        this.steps.push(step);
        this.actual = simulate(this.actual, [step]);
      },
      resolve: async (name) => {
        this.resolved.push(name);
        return this.names[name] ?? [];
      },
      answers: async (address) => this.alive.has(address),
      reaches: async (target) => this.reaches(target),
      echoes: async (address, { bytes, count }) => {
        const own = address.startsWith('10.77.') ? (this.actual.link?.mtu ?? 0) : 1500;
        const largest = this.wide.get(address) ?? own;
        for (let sent = 0; sent < count; sent += 1) {
          if ((await this.echoes(address, bytes)) && bytes <= largest) return true;
        }
        return false;
      },
      widen: async (_, addresses, mtu) => {
        for (const address of addresses) this.wide.set(address, mtu);
        return async () => this.wide.clear();
      },
      nudge: async (address) => this.nudged(address),
      forwardDrops: async () => this.drops,
      suspects: async () => ['NetworkManager (pid 7)'],
      links: async () => new Set(this.actual.link === null ? [] : [this.actual.link.name]),
      route: unused,
      sourceAddress: unused,
      isPortFree: async (port) => !this.takenPorts.has(port),
      watch: unused,
      watchFirewall: unused,
      watchDevices: unused,
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
      describePeer: async (_network, _peer, _token, told) => {
        await this.describes(told);
        this.described.push(told);
      },
      removePeer: async (_network, _peer, token) => this.removes(token),
      withdraw: async (_network, _peer, _token, prefixes) => {
        await this.withdraws(prefixes);
        this.withdrawn.push(prefixes);
      },
      readMap: async (_network, _token, known, wait) => {
        const base = typeof known === 'string' ? null : known;
        const revision = base === null ? (known as string | null) : base.revision;
        this.asked.push({ revision, base, wait });
        const answer = this.answers.length > 1 ? this.answers.shift() : this.answers[0];
        if (!answer) throw new Error('the control plane has nothing to say');
        return answer(revision, wait);
      },
    };
  }
}

/** This host, number 1, as its network lists it; it can be dialled. */
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
    pins: [],
    labels: [],
    receipt: [],
    ...changes,
  };
}

/** A map with these peers and this host, at a revision. */
export function mapAt(revision: string | null, peers: readonly Peer[], changes: Partial<NetworkMap> = {}): NetworkMap {
  return network([self, ...peers], { revision, ...changes });
}

/** The service answers with this map, unless it is the one named. */
export function answerWith(map: NetworkMap, waited = false): Answer {
  return (revision) => ({ map: map.revision !== null && map.revision === revision ? null : map, waited });
}

/** The service fails. */
export function fail(error: unknown): Answer {
  return () => {
    throw error;
  };
}
