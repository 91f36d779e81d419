import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { EvaluationCache } from '../../src/app/evaluation-cache.ts';
import { SavedConfigs } from '../../src/app/saved-configs.ts';
import { noMeter, type Tools } from '../../src/app/tools.ts';
import { CommandFailed } from '../../src/core/errors/index.ts';
import type { ForeignDrops } from '../../src/core/forward/foreign/foreign-drops.ts';
import type { Actual, ActualPeer, LinkDnsSettings, SshClient } from '../../src/core/host-state/actual.ts';
import type { KernelRoute } from '../../src/core/host-state/kernel-route.ts';
import type { PortState } from '../../src/core/host-state/receipt.ts';
import type { Address } from '../../src/core/net/cidr.ts';
import type { Step } from '../../src/core/reconcile/step.ts';
import type { RefusedTraffic } from '../../src/core/rules/refused.ts';
import type { Answerer, Host, ResolvedTarget } from '../../src/host/host.ts';
import { fileStore } from '../../src/store/file-store.ts';
import type { Joined } from '../../src/store/state/state.ts';
import { address, bare, keyPair } from '../core/samples.ts';
import { simulate } from '../core/simulate.ts';
import { memory } from '../lab/memory.ts';
import { SimulatedService } from './simulated-service.ts';

function unexpected(): never {
  throw new Error('unexpected call');
}

/** A host of one network, in memory except for its files. Its clock advances only during sleep. */
export class SimulatedHost {
  readonly service = new SimulatedService();
  actual: Actual = bare;
  sshClients: readonly SshClient[] = [];
  /** How often the SSH sessions were read. */
  sessionReads = 0;
  /** All steps that were applied to the host, in order. */
  readonly steps: Step[] = [];
  /** The number of observations. */
  observations = 0;
  /** The number of observations that read WireGuard alone. */
  deviceReadings = 0;
  /** The records of the resolver. */
  dnsRecords: Record<string, readonly Address[]> = {};
  readonly resolvedNames: string[] = [];
  /** The UDP ports that another program uses. */
  readonly takenPorts = new Set<number>();
  /** The addresses in the tunnel that accept TCP connections. */
  readonly reachable = new Set<string>();
  /** Addresses of connectors that answer that they serve nothing. */
  readonly closed = new Set<string>();
  /** Whether an echo of this size, headers included, gets a reply. */
  onEcho: (address: Address, bytes: number, mark?: number) => boolean | Promise<boolean> = () => false;
  /** The MTU for echoes to an address, where it exceeds that of the interface. */
  readonly widePaths = new Map<Address, number>();
  /** Whether the probe of a host in the LAN succeeds. */
  onLanProbe: (target: ResolvedTarget) => boolean | Promise<boolean> = () => false;
  readonly logged: { readonly level: string; readonly facts: object; readonly message: string }[] = [];
  /** The user whose program listens at a loopback address. */
  onFindListeningUser: Tools['findListeningUser'] = async () => null;
  /** The kernel's route to an address. */
  onRoute: (destination: Address) => KernelRoute = unexpected;
  /** The effect of a datagram into the tunnel. */
  onHandshakeTrigger: (address: Address) => void = unexpected;
  /** The source address of this host for a destination; null without a route. */
  sourceAddressTo: (destination: Address) => Address | null = (destination) =>
    address(destination.includes(':') ? '2001:db8::fe' : '192.0.2.254');
  /** The states of ports that firewall programs report. */
  ports: PortState[] = [];
  /** The drops by packet rules of other programs. */
  drops: ForeignDrops = { forward: [], inbound: null };
  /** The packets that the rules of a closed network refused; an error if they cannot be read. */
  refused: RefusedTraffic | null | CommandFailed = null;
  /** The addresses in the network to which packets left lately, and how many packets left. */
  destinations: readonly Address[] = [];
  sent = 0;
  /** The server of names that runs. */
  served: { readonly address: Address; readonly answer: Answerer } | null = null;
  /** Whether the host refuses a step. */
  refusesStep: (step: Step) => boolean = () => false;
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
        this.service.connectOptions = patience;
        this.service.knownService = known;
        return this.service.connect();
      },
      describe: async (_, etag, signal) => this.service.onDescribe(etag, signal),
      findListeningUser: async (service, before) => this.onFindListeningUser(service, before),
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
      evaluations: new EvaluationCache(),
      savedConfigs: new SavedConfigs(),
      meter: noMeter,
      progress: () => {},
      warn: () => {},
    };
  }

  /** The DNS settings of the interface. */
  get linkDns(): LinkDnsSettings | null {
    const { dns } = this.actual;
    return dns?.program === 'systemd-resolved' ? dns.own : null;
  }

  /** A host with a state on disk that is not applied to the host yet. */
  static async with(state: Joined): Promise<SimulatedHost> {
    const host = await SimulatedHost.empty();
    await host.tools.store.write(state);
    return host;
  }

  /** A host without a network. */
  static async empty(): Promise<SimulatedHost> {
    const folder = await mkdtemp(join(memory, 'cpn-simulated-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    return new SimulatedHost(folder);
  }

  /** The one state that is on disk. */
  async state(): Promise<Joined> {
    return (await this.tools.store.read('cpn0')) as Joined;
  }

  /** Changes a peer in the WireGuard device. */
  updatePeer(number: number, changes: Partial<ActualPeer>): void {
    const { device } = this.actual;
    if (device === null) throw new Error('there is no interface');
    const { publicKey } = keyPair(number);
    const peers = device.peers.map((each) => (each.publicKey === publicKey ? { ...each, ...changes } : each));
    this.actual = { ...this.actual, device: { ...device, peers } };
  }

  #host(): Required<Host> {
    return {
      check: async () => {},
      observe: async ({ previous = null }) => {
        if (previous === null) this.observations += 1;
        else this.deviceReadings += 1;
        return previous === null ? this.actual : { ...previous, device: this.actual.device };
      },
      tcpConnections: () => [],
      sshClients: async () => {
        this.sessionReads += 1;
        return this.sshClients;
      },
      device: async () => this.actual.device,
      apply: async (step) => {
        if (this.refusesStep(step)) throw new CommandFailed(step.do, 1, 'no');
        this.steps.push(step);
        this.actual = simulate(this.actual, [step]);
      },
      resolve: async (name) => {
        this.resolvedNames.push(name);
        return this.dnsRecords[name] ?? [];
      },
      isTcpReachable: async (address) => this.reachable.has(address),
      probeConnector: async (address, deadline) => {
        const answers = await this.tools.host.isTcpReachable(address, deadline);
        return this.closed.has(address) ? 'closed' : answers ? 'open' : 'silent';
      },
      answersQuery: async (resolver) => this.reachable.has(resolver),
      queryDomain: async (servers) => (servers.some((each) => this.reachable.has(each)) ? null : 'silent'),
      probe: async (target) => this.onLanProbe(target),
      probeSize: async (address, { bytes, count, mark }) => {
        const own = address.startsWith('10.77.') ? (this.actual.link?.mtu ?? 0) : 1500;
        const largest = this.widePaths.get(address) ?? own;
        for (let sent = 0; sent < count; sent += 1) {
          if ((await this.onEcho(address, bytes, mark)) && bytes <= largest) return true;
        }
        return false;
      },
      raiseProbeMtu: async (_, addresses, mtu) => {
        for (const address of addresses) this.widePaths.set(address, mtu);
        return async () => this.widePaths.clear();
      },
      triggerHandshake: async (address) => this.onHandshakeTrigger(address),
      portStates: async (_, port) => this.ports.filter(({ at }) => at.port === port),
      foreignDrops: async () => this.drops,
      readRefused: async () => {
        if (this.refused instanceof CommandFailed) throw this.refused;
        return this.refused;
      },
      readRecentDestinations: async () => this.destinations,
      countSent: async () => this.sent,
      conflictingProcesses: async () => ['NetworkManager (pid 7)'],
      foreignSocket: async () => null,
      retryUnbound: async () => {},
      serveNames: async ({ address }, answer) => {
        this.served = { address, answer };
        this.actual = { ...this.actual, dns: this.actual.dns ? { ...this.actual.dns, isServing: true } : null };
        return {
          close: async () => {
            this.served = null;
            this.actual = { ...this.actual, dns: this.actual.dns ? { ...this.actual.dns, isServing: false } : null };
          },
        };
      },
      links: async () => new Set(this.actual.link === null ? [] : [this.actual.link.name]),
      route: async (destination) => this.onRoute(destination),
      sourceAddress: async (destination) => this.sourceAddressTo(destination),
      isPortFree: async (port) => !this.takenPorts.has(port),
      watch: unexpected,
      watchFirewall: unexpected,
      watchDevices: unexpected,
    };
  }
}
