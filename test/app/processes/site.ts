import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { JoinRequest } from '../../../src/app/join/join-request.ts';
import type { Tools } from '../../../src/app/tools.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { Locked } from '../../../src/core/errors/index.ts';
import { boundsForwarding } from '../../../src/core/forward/own-table.ts';
import type { Actual } from '../../../src/core/host-state/actual.ts';
import type { OwnedResource } from '../../../src/core/host-state/receipt.ts';
import { forwardingKey } from '../../../src/core/host-state/sysctl-keys.ts';
import { parseEndpoint } from '../../../src/core/net/endpoint.ts';
import { recordSteps } from '../../../src/core/reconcile/record-receipt.ts';
import type { Step } from '../../../src/core/reconcile/step.ts';
import type { Host } from '../../../src/host/host.ts';
import { fileStore } from '../../../src/store/file-store.ts';
import type { State } from '../../../src/store/state/state.ts';
import type { Folders } from '../../../src/store/store.ts';
import { bare, network, options } from '../../core/samples.ts';
import { simulate } from '../../core/simulate.ts';
import { memory } from '../../lab/memory.ts';
import { joinedTo } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { Service } from './service.ts';

/** A control plane and one host, on which any number of processes work. */
export class Site {
  readonly #simulated: SimulatedHost;
  readonly #folders: Folders;
  readonly #links = new Map<string, Actual>();
  readonly service = new Service();
  #sysctls: Actual['sysctls'] = {};
  #made = 0;
  /** Whether peers complete no handshake. */
  isSilent = false;

  private constructor(simulated: SimulatedHost, folder: string) {
    this.#simulated = simulated;
    this.#folders = { config: join(folder, 'etc'), state: join(folder, 'state'), runtime: join(folder, 'run') };
    simulated.reachable.add('10.77.0.2');
  }

  static async open(): Promise<Site> {
    return new Site(await SimulatedHost.empty(), await mkdtemp(join(memory, 'cpn-site-')));
  }

  /** The folder of all that the program keeps. */
  get root(): string {
    return dirname(this.#folders.state);
  }

  close(): Promise<void> {
    return rm(this.root, { recursive: true, force: true });
  }

  /** The same host and control plane as they are now, with every process of this one killed. */
  async fork(): Promise<Site> {
    const copy = await Site.open();
    copy.#simulated.seconds = this.#simulated.seconds;
    copy.service.copy(this.service);
    for (const [link, actual] of this.#links) copy.#links.set(link, actual);
    copy.#sysctls = this.#sysctls;
    copy.#made = this.#made;
    copy.isSilent = this.isSilent;
    for (const [name, from] of Object.entries(this.#folders)) {
      const to = copy.#folders[name as keyof Folders];
      for (const file of await readdir(from).catch(() => [])) {
        // A process that is killed holds no lock any more.
        if (/^(lock|change|daemon)(\.pid)?$/.test(file)) continue;
        await mkdir(to, { recursive: true, mode: 0o700 });
        const text = await readFile(join(from, file), 'utf8');
        await writeFile(join(to, file), text.replaceAll(this.root, copy.root), { mode: 0o600 });
      }
    }
    return copy;
  }

  /** What is left on the host once it left all its networks. */
  async leftovers(): Promise<readonly string[]> {
    const ofLinks = [...this.#links].flatMap(([link, { link: found, firewall, hosts, rules }]) => [
      ...(found === null ? [] : [`interface ${link}`]),
      ...(firewall === null ? [] : [`packet rules of ${link}`]),
      ...(hosts?.block ? [`names of ${link}`] : []),
      ...rules.map(() => `a rule of ${link}`),
    ]);
    const sysctls = Object.entries(this.#sysctls).flatMap(([key, value]) => (value === '1' ? [key] : []));
    return [...ofLinks, ...sysctls, ...(await readdir(this.root))];
  }

  /** The tools of one process. Where it finds a lock held it fails at once: what holds the lock stands still. */
  process(): Tools {
    const simulated = this.#simulated;
    const store = fileStore(this.#folders);
    const refuseHeld = async () => {
      if (await store.isLocked()) throw new Locked(this.#folders.runtime, 'standing', 'cpn');
    };
    return {
      ...simulated.tools,
      store: {
        ...store,
        get damaged() {
          return store.damaged;
        },
        lock: async (work) => {
          await refuseHeld();
          return store.lock(work);
        },
        change: (work) => store.change(work, false),
      },
      host: this.#host(),
      connect: async () => this.service.connect(),
      describe: async () => simulated.service.onDescribe(null, undefined),
      random: (bytes) => {
        this.#made += 1;
        return new Uint8Array(bytes).fill(this.#made);
      },
    };
  }

  #host(): Host {
    const on = (link: string) => ({ ...(this.#links.get(link) ?? bare), sysctls: this.#sysctls });
    return {
      ...this.#simulated.tools.host,
      observe: async ({ link, previous: around = null }) => ({ ...(around ?? on(link)), device: on(link).device }),
      device: async (link) => on(link).device,
      links: async () => new Set([...this.#links].flatMap(([link, { link: found }]) => (found ? [link] : []))),
      triggerHandshake: async (address) => this.#answer(address),
      apply: async (step) => {
        const link = linkOf(step);
        await this.#checkReceipt(step, on(link));
        const next = simulate(on(link), [step]);
        this.#links.set(link, next);
        const others = Object.entries(this.#sysctls).filter(
          ([key]) => /\.cpn\d\./.test(key) && !key.includes(`.${link}.`),
        );
        this.#sysctls = { ...Object.fromEntries(others), ...next.sysctls };
        await this.#checkForwarding(step);
      },
    };
  }

  /** What a step makes is in a receipt on disk: a process that is killed then leaves nothing that no leave takes back. */
  async #checkReceipt(step: Step, actual: Actual): Promise<void> {
    const nameOf = (entry: OwnedResource) => JSON.stringify([entry.made, 'key' in entry ? entry.key : entry]);
    const { states } = await fileStore(this.#folders).list();
    const written = new Set(states.flatMap(({ receipt }) => receipt.map(nameOf)));
    const missing = recordSteps([], [step], actual)
      .map(nameOf)
      .find((name) => !written.has(name));
    if (missing !== undefined) throw new Error(`${step.do} makes ${missing}, which is in no receipt yet`);
  }

  /**
   * An interface that was opened for our networks forwards only while packet rules of one of them
   * limit it. A tunnel forwards only while its own rules do.
   */
  async #checkForwarding(step: Step): Promise<void> {
    const { states } = await fileStore(this.#folders).list();
    const receipts = states.flatMap(({ receipt }) => receipt);
    const opened = receipts.flatMap((entry) => (entry.made === 'sysctl' && entry.opening ? [entry.key] : []));
    const isClosed = [...this.#links.values()].some(({ firewall }) =>
      firewall?.some((mark) => mark.includes(' cpn refuse-passing ')),
    );
    const unlimited = [...this.#links].flatMap(([link, actual]) =>
      boundsForwarding(actual) ? [] : [forwardingKey(link)],
    );
    const open = [...(isClosed ? [] : opened), ...unlimited].filter((key) => this.#sysctls[key] === '1');
    if (open.length > 0) throw new Error(`after ${step.do}, ${open.join(', ')} is on without packet rules`);
  }

  /** A peer completes a handshake, where it has the present key of this host. */
  #answer(address: string): void {
    if (this.isSilent) return;
    for (const [link, actual] of this.#links) {
      const { device } = actual;
      const peer = this.service.peersAround(device?.publicKey ?? null).find((each) => each.address === address);
      if (device === null || peer === undefined) continue;
      const latestHandshake = Math.floor(this.#simulated.tools.now().getTime() / 1000);
      const peers = device.peers.map((each) =>
        each.publicKey === peer.publicKey ? { ...each, latestHandshake } : each,
      );
      this.#links.set(link, { ...actual, device: { ...device, peers } });
    }
  }

  /** Whether a change of keys has not ended. */
  async isRotating(): Promise<boolean> {
    return (await this.process().store.list()).states.some(({ rotation }) => rotation !== null);
  }

  /** The keys of this host in a network: in the state, the file, the interface and at the control plane. */
  async keys(link: string): Promise<readonly (string | null | undefined)[]> {
    const { store } = this.process();
    const state = await store.read(link);
    const config = await readFile(store.configPath(link), 'utf8').catch(() => '');
    const listed = this.service.peersOf(state?.membership?.map.id ?? 0).find(({ id }) => id === 1);
    const written = /PrivateKey = (\S+)/.exec(config)?.[1];
    return [
      state?.keyPair.publicKey,
      written === state?.keyPair.privateKey.reveal() ? state?.keyPair.publicKey : written,
      this.#links.get(link)?.device?.publicKey,
      listed?.publicKey,
    ];
  }

  /** All that two processes may make different, but for times, keys and revisions. */
  async summary() {
    const { store } = this.process();
    const { states } = await store.list();
    const { memberships } = await store.readFormer();
    const hosts = [...this.#links]
      .filter(([, { link }]) => link !== null)
      .map(([link, actual]) => [link, seen(actual)]);
    return {
      states: states.map(kept),
      former: memberships.map((each) => [each.interface, each.network.id]).sort(),
      networks: this.service.summary(),
      hosts: hosts.sort(),
      named: [...this.#links].flatMap(([link, { hosts: file }]) => (file?.block ? [link] : [])),
    };
  }
}

function linkOf(step: Step): string {
  if (step.do === 'set-firewall') return step.firewall.link;
  if (step.do === 'set-sysctl') return /\bcpn\d\b/.exec(step.key)?.[0] ?? 'cpn0';
  return step.link;
}

function kept({ interface: link, enabled, drained, options, service, enrollment, membership, receipt }: State) {
  const { name, endpoint } = enrollment;
  const peers = membership?.map.peers.map(({ id }) => id);
  return {
    link,
    enabled,
    drained,
    options,
    service,
    name,
    endpoint,
    peers,
    receipt: receipt.filter(({ made }) => made !== 'folder').length,
  };
}

function seen({ link, device, routes, firewall }: Actual) {
  const peers = device?.peers.map(({ publicKey }) => publicKey);
  return { mtu: link?.mtu, peers, port: device?.listenPort, routes, hasRules: firewall !== null };
}

/** What `cpn join` is called with. */
export function requestFor(key: string, changes: Partial<JoinRequest> = {}): JoinRequest {
  const { service } = joinedTo(network([]));
  return {
    ...{ token: new Secret(key), service, name: 'host', type: 'connector', interface: null },
    ...{
      endpoint: parseEndpoint(`203.0.113.22:${key === 'key of office' ? 51_820 : 51_821}`),
      options,
      named: new Set(),
      networkSecret: null,
    },
    ...{ personalToken: null, isUnattended: false, handshakeTimeoutMs: 0, ...changes },
  };
}
