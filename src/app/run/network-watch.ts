import { NotNamed } from '../../core/errors.ts';
import type { Failure } from '../../core/model.ts';
import type { PathMtu } from '../../core/path-mtu.ts';
import { explainHosts } from '../../core/plan-hosts.ts';
import type { HostEvent } from '../../host/host.ts';
import type { Pass } from '../pass.ts';
import type { Tools } from '../tools.ts';
import { EndpointWatch } from './endpoint-watch.ts';
import { FailureWatch } from './failure-watch.ts';
import { ForwardWatch } from './forward-watch.ts';
import { LanWatch } from './lan-watch.ts';
import { MtuWatch } from './mtu-watch.ts';
import { Once } from './once.ts';
import { PeerWatch } from './peer-watch.ts';
import { PinWatch } from './pin-watch.ts';
import { RotationWatch } from './rotation-watch.ts';
import { SecretWatch } from './secret-watch.ts';
import { ServiceWatch } from './service-watch.ts';
import { SkippedWatch } from './skipped-watch.ts';
import { TakeoverWatch } from './takeover-watch.ts';

/** How long things may take, as a person set it. */
interface Pace {
  readonly interval: number;
  readonly confirmMs: number;
}

/** Everything about one network that no single look at the host tells, and that is followed from pass to pass and between them. */
export class NetworkWatch {
  readonly #tools: Tools;
  readonly #link: string;
  readonly #peers: PeerWatch;
  readonly #pins: PinWatch;
  readonly #skipped: SkippedWatch;
  readonly #endpoints: EndpointWatch;
  readonly #failures: FailureWatch;
  readonly #lan: LanWatch;
  readonly #service: ServiceWatch;
  readonly #secret: SecretWatch;
  readonly #forwarding: ForwardWatch;
  readonly #rotation: RotationWatch;
  readonly #takeovers: TakeoverWatch;
  readonly #hosts: Once;
  readonly #mtu: MtuWatch;

  /**
   * @param interval seconds between two passes that nothing asks for
   * @param confirmMs milliseconds within which a change that could cut the host off is confirmed
   * @param ring is called when there is reason for a pass
   */
  constructor(tools: Tools, link: string, { interval, confirmMs }: Pace, ring: () => void) {
    this.#tools = tools;
    this.#link = link;
    this.#peers = new PeerWatch(tools, link);
    this.#pins = new PinWatch(tools, link);
    this.#skipped = new SkippedWatch(tools, link);
    this.#endpoints = new EndpointWatch(tools, link);
    this.#failures = new FailureWatch(tools, link, ring);
    this.#lan = new LanWatch(tools, link, ring);
    this.#service = new ServiceWatch(tools, link);
    this.#secret = new SecretWatch(tools, link);
    this.#forwarding = new ForwardWatch(tools, link, interval);
    this.#rotation = new RotationWatch(tools, link, confirmMs, ring);
    this.#takeovers = new TakeoverWatch(tools.meter, link);
    this.#mtu = new MtuWatch(tools, link, ring);
    const trouble = { begins: 'the hosts file cannot be changed', ends: 'the hosts file can be changed again' };
    this.#hosts = new Once(tools.log, { interface: link }, trouble);
  }

  /** The peers to avoid; null while nothing is known of it beside what is on disk. */
  get failed(): readonly Failure[] | null {
    return this.#failures.failed;
  }

  /** What was measured of paths; undefined while there is nothing new. */
  get pathMtu(): PathMtu | null | undefined {
    return this.#mtu.pathMtu;
  }

  /** Nothing known of the outside holds any more. */
  forget(): void {
    this.#mtu.forget();
  }

  /** Something changed on this host. */
  hear({ kind }: HostEvent): void {
    if (kind === 'firewall') this.#forwarding.expect();
  }

  /** Goes on until `signal` aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    const watches = [this.#failures, this.#lan, this.#rotation, this.#mtu];
    await Promise.all(watches.map((each) => each.watch(signal)));
  }

  /** Takes one more pass into account. */
  async note({ survey, changes }: Pass): Promise<void> {
    this.#failures.follow(survey);
    this.#mtu.follow(survey);
    await this.#lan.note(survey?.state ?? null);
    if (changes.length > 0) this.#forwarding.expect();
    await this.#forwarding.note(survey);
    if (survey === null) return;
    this.#pins.follow(survey.state);
    this.#skipped.follow(survey.state);
    this.#endpoints.follow(survey);
    this.#takeovers.note(survey);
    await this.#peers.note(survey);
    const unnamed = explainHosts(survey.desired, survey.actual);
    this.#hosts.notice(unnamed === null ? null : new NotNamed(this.#link, unnamed));
    this.#secret.follow(survey);
    await this.#rotation.note(survey);
    this.#service.follow(survey, await this.#tools.store.readNotes(this.#link));
  }
}
