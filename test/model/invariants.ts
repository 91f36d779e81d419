/** What has to hold on the hosts of a random day after each happening, and at its end. */
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { dialSession, type SshSession } from '../lab/ssh-session.ts';
import { connectors, isConnector, type Lan, lans, type Member, type Model, members } from './model.ts';
import { type Site, second } from './site.ts';

/**
 * How long hosts may take until everything holds: a lost connector, and handshakes without an answer, need their time. A long poll to the
 * control plane ends after 60 s when a NAT on the path gets another address.
 */
const patience = { timeoutMs: 100_000, everyMs: 300 };

/** Milliseconds in which daemons change nothing when nothing happens. */
const quiet = 4000;

/** The messages by which a daemon logs that it changed its host. */
const changing: ReadonlySet<string> = new Set(['change applied', 'drift repaired']);

export class Invariants {
  readonly #site: Site;
  #session: SshSession | null = null;
  #leaked = 0;
  #answered = 0;
  #typed = 0;

  constructor(site: Site) {
    this.#site = site;
  }

  /** Ends the session that goes through the tunnel; the next one is opened once all is settled. */
  endSession(): void {
    this.#session = null;
  }

  /** Waits until everything holds that has to, and fails with what does not. */
  async settle(model: Model): Promise<void> {
    await eventually('everything holds', () => this.#examine(model), patience);
    const leaked = await this.#site.countLeaks();
    if (leaked > this.#leaked && !model.isLeakExcused) {
      throw new Error(`${leaked - this.#leaked} packets of a stranger passed a connector`);
    }
    this.#leaked = leaked;
    const answered = await this.#site.countAnswers();
    if (answered > this.#answered && !model.isLeakExcused) {
      throw new Error(`${answered - this.#answered} answers came to a stranger from tunnel addresses`);
    }
    this.#answered = answered;
    model.isLeakExcused = false;
    await this.#examineSession(model);
  }

  /** Waits until no daemon changes anything on its host for a while: repairs that follow each other without end are an oscillation. */
  async awaitQuiet(model: Model): Promise<void> {
    const present = members.filter((name) => model.present.has(name));
    const look = async (): Promise<true> => {
      const marks = present.map((name) => this.#site.daemon(name).mark());
      await sleep(quiet);
      const changes = present.flatMap((name, index) =>
        this.#site
          .daemon(name)
          .since(marks[index] ?? 0)
          .filter(({ msg }) => changing.has(msg))
          .map((line) => `${name}: ${JSON.stringify(line)}`),
      );
      if (changes.length > 0) throw new Error(`hosts are changed while nothing happens:\n${changes.join('\n')}`);
      return true;
    };
    await eventually('the daemons change nothing', look, patience);
  }

  /** Waits until one member reaches the others. */
  async awaitPeers(name: Member, model: Model): Promise<void> {
    const wanted = members.filter((each) => each !== name && model.present.has(each));
    const look = async () => {
      const answered = await pingAll(
        this.#site.host(name),
        wanted.map((each) => this.#site.tunnelAddress(each)),
      );
      return answered.size >= wanted.length;
    };
    await eventually(`${name} reaches the others`, look, patience);
  }

  /** Waits until these reach a LAN. */
  async awaitLan(lan: Lan, names: readonly Member[]): Promise<void> {
    const { server } = lans[lan];
    const look = async (): Promise<true> => {
      for (const name of names) {
        const answered = await pingAll(this.#site.host(name), [server]);
        if (!answered.has(server)) throw new Error(`${name}: no answer of ${server}`);
      }
      return true;
    };
    await eventually('the LAN is reached', look, patience);
  }

  /** At the end of the day: nothing changes any more, one member leaves and leaves nothing, and no secret was printed. */
  async close(model: Model, leaver: Member): Promise<void> {
    await this.awaitQuiet(model);
    if (model.present.has(leaver)) await this.#examineLeaving(leaver, model);
    await this.#examineSecrets();
  }

  /** True when all holds; throws what does not. */
  async #examine(model: Model): Promise<true> {
    const present = members.filter((name) => model.present.has(name));
    const found = await Promise.all(present.map((name) => this.#examineMember(name, model)));
    const wrong = found.flat();
    if (wrong.length > 0) throw new Error(wrong.join('\n'));
    return true;
  }

  async #examineMember(name: Member, model: Model): Promise<string[]> {
    const host = this.#site.host(name);
    const serving = connectors.some((each) => model.present.has(each) && !model.drained.has(each));
    const others = members.filter((each) => each !== name && model.present.has(each));
    const wanted = new Map<string, string>(others.map((other) => [this.#site.tunnelAddress(other), other]));
    const unwanted: string[] = [];
    for (const [lan, { server }] of Object.entries(lans) as [Lan, { server: string }][]) {
      if (isConnector(name) || (model.routed.has(lan) && serving)) wanted.set(server, `the ${lan} LAN`);
      else unwanted.push(server);
    }
    const answered = await pingAll(host, [...wanted.keys(), ...unwanted]);
    const wrong = [
      ...[...wanted]
        .filter(([address]) => !answered.has(address))
        .map(([address, what]) => `${name}: no answer of ${what} (${address})`),
      ...unwanted
        .filter((address) => answered.has(address))
        .map((address) => `${name}: ${address} answers, and should not`),
    ];
    // Status has a loss only after ping has it.
    if (wrong.length > 0) return wrong;
    wrong.push(...(await this.#examineStatus(name, model)));
    if (wrong.length > 0) return wrong;
    const planned = await this.#site.cpn(name, ['plan', '--json'], { allowFailure: true });
    if (planned.exitCode !== 0) wrong.push(`${name}: plan has ${planned.stdout}`);
    await this.#site.noteSecrets(name);
    return wrong;
  }

  async #examineStatus(name: Member, model: Model): Promise<string[]> {
    const wrong: string[] = [];
    const checked = await this.#site.cpn(name, ['status', '--check', '--json'], { allowFailure: true });
    const { networks } = JSON.parse(checked.stdout);
    const [seen] = networks;
    const peers: { name: string; state: string }[] = seen.peers;
    const states = new Map(peers.map((peer) => [peer.name, peer.state]));
    // A peer without power does not answer, which the status has once something was sent to it.
    const away = members.filter((each) => !model.present.has(each));
    const isAwaySeen = away.some((each) => states.get(each) === 'stale');
    const [state, exitCode] = isAwaySeen ? ['degraded', 3] : ['up', 0];
    const isCopyReported = model.copied.has(name) && seen.state === 'degraded' && checked.exitCode === 3;
    if (!isCopyReported && seen.state !== state)
      wrong.push(`${name}: status says ${seen.state}: ${JSON.stringify(seen)}`);
    if (!isCopyReported && checked.exitCode !== exitCode)
      wrong.push(`${name}: status --check exits with ${checked.exitCode}`);
    for (const each of members) {
      const isLive = states.get(each) === 'connected';
      if (each !== name && model.present.has(each) && !isLive) wrong.push(`${name}: ${each} is ${states.get(each)}`);
    }
    if (seen.drift.length > 0) wrong.push(`${name}: drift ${JSON.stringify(seen.drift)}`);
    const missing = seen.routes.filter((route: { state: string }) => route.state === 'missing');
    if (missing.length > 0) wrong.push(`${name}: routes are missing: ${JSON.stringify(missing)}`);
    if (networks.length !== (model.elsewhere.has(name) ? 2 : 1))
      wrong.push(`${name}: is in ${networks.length} networks`);
    const expected = members.filter((each) => each !== name);
    if ([...states.keys()].sort().join() !== expected.toSorted().join()) {
      wrong.push(`${name}: has the peers ${[...states.keys()].join(', ')}`);
    }
    return wrong;
  }

  /** A session through the tunnel survives whatever a day brings to the hosts between its ends. */
  async #examineSession(model: Model): Promise<void> {
    if (!model.present.has('origin') || !model.present.has('laptop')) return this.endSession();
    const { laptop } = this.#site.hosts;
    if (this.#session === null) this.#session = await dialSession(laptop, this.#site.tunnelAddress('origin'));
    this.#typed += 1;
    await this.#session.type(`line ${this.#typed}`);
  }

  /** A host that left is as it was before it joined. */
  async #examineLeaving(name: Member, model: Model): Promise<void> {
    await this.#site.stopDaemon(name);
    const networks = model.elsewhere.has(name) ? [second.name, 'office'] : ['office'];
    for (const network of networks) await this.#site.cpn(name, ['leave', network, '--yes', '--verify']);
    const left = await this.#site.findLeft(name);
    if (left.length > 0)
      throw new Error(`after "cpn leave", ${name} is not as it was before it joined:\n${left.join('\n')}`);
  }

  /** Nothing that a daemon or a command wrote has a secret of a host. */
  async #examineSecrets(): Promise<void> {
    const running = members.map((name) => this.#site.daemon(name).process.output);
    const said = [...this.#site.said, ...running.flatMap(({ stdout, stderr }) => [stdout, stderr])].join('\n');
    const leaked = [
      ...[...this.#site.secrets].filter((secret) => said.includes(secret)),
      ...(said.match(/\bcp[nptu]_[\w-]{16,}/g) ?? []),
    ];
    if (leaked.length > 0) throw new Error(`${leaked.length} secrets were printed`);
  }
}

/** The addresses that answer, of these. */
async function pingAll(host: Host, addresses: readonly string[]): Promise<ReadonlySet<string>> {
  const script = 'for each; do (ping -n -c 1 -W 2 "$each" >/dev/null && echo "$each") & done; wait';
  const { stdout } = await host.exec(['sh', '-c', script, 'sh', ...addresses]);
  return new Set(stdout.split('\n').filter((line) => line !== ''));
}
