import type { Tools } from '../tools.ts';
import { FeatureFollower } from './feature-follower.ts';
import { FailureTracker } from './health/failure-tracker.ts';
import { LanProber } from './health/lan-prober.ts';
import { MtuProber } from './health/mtu-prober.ts';
import { PeerProber } from './health/peer-prober.ts';
import { CloneListener } from './listeners/clone-listener.ts';
import type { DriftDamper } from './listeners/drift-damper.ts';
import { DropListener } from './listeners/drop-listener.ts';
import { FailoverCounter } from './listeners/failover-counter.ts';
import { LanRouteListener } from './listeners/lan-route-listener.ts';
import { NameListener } from './listeners/name-listener.ts';
import { PassLogger } from './listeners/pass-logger.ts';
import { PeerListener } from './listeners/peer-listener.ts';
import { PinListener } from './listeners/pin-listener.ts';
import { ProblemListener } from './listeners/problem-listener.ts';
import { RefusalListener } from './listeners/refusal-listener.ts';
import { ReportListener } from './listeners/report-listener.ts';
import { RoamingListener } from './listeners/roaming-listener.ts';
import { RotationListener } from './listeners/rotation-listener.ts';
import { SecretListener } from './listeners/secret-listener.ts';
import { ServiceListener } from './listeners/service-listener.ts';
import { ServingListener } from './listeners/serving-listener.ts';
import { UnderlayListener } from './listeners/underlay-listener.ts';
import { MapFollower } from './map-follower.ts';
import { NameFollower } from './name-follower.ts';
import type { PassListener, ResetCause } from './pass-listener.ts';
import { PathListener } from './paths/path-listener.ts';
import type { PendingUpdate } from './pending-update.ts';

interface ListenerContext {
  readonly tools: Tools;
  readonly link: string;
  readonly interval: number;
  readonly confirmMs: number;
  readonly update: PendingUpdate;
  readonly damper: DriftDamper;
  readonly reset: (cause: ResetCause) => void;
  readonly startOver: () => void;
}

/** Creates the listeners of one network, in the order in which they receive a pass. */
export function createListeners(context: ListenerContext): readonly PassListener[] {
  const { tools, link, interval, confirmMs, update, damper, reset, startOver } = context;
  const failures = new FailureTracker(tools, link, update);
  const reports = new ReportListener(tools, link, () => failures.rtts);
  const prober = new PeerProber(tools, link, (probes) => reports.noteProbed(probes));
  const paths = new PathListener(tools, link, update.trigger, () => map.reset());
  const drops = new DropListener(tools, link, interval, update.trigger);
  const map = new MapFollower(
    tools,
    link,
    interval,
    (stateUpdate) => update.addMap(stateUpdate),
    () => reports.reportIdle(),
    (messages) => {
      prober.receive(messages);
      paths.receive(messages);
    },
  );
  return [
    new PassLogger(tools.log, link),
    damper,
    failures,
    new RoamingListener(
      tools,
      link,
      () => {
        failures.move();
        paths.move();
      },
      () => paths.arrive(),
    ),
    new MtuProber(tools, link, update),
    new LanProber(tools, link, update.trigger),
    drops,
    new ProblemListener(tools),
    new PinListener(tools, link),
    new CloneListener(tools, link),
    new FailoverCounter(tools.meter, link),
    new PeerListener(tools, link),
    new SecretListener(tools, link),
    new RotationListener(tools, link, confirmMs, update.trigger),
    new LanRouteListener(tools, link, update.trigger, () => drops.routes),
    // After the two listeners that record which LANs and routes are dead.
    new ServiceListener(tools, link),
    new ServingListener(tools, link),
    new RefusalListener(tools, link, (refused) => reports.noteRefused(refused)),
    reports,
    prober,
    paths,
    map,
    new FeatureFollower(tools, link, () => map.reset()),
    new UnderlayListener(() => reset('underlay')),
    new NameFollower(tools, link, interval, update),
    // A unit that waits for the daemon may need a name of a peer.
    new NameListener(tools, link, startOver),
  ];
}
