import type {
  Enrolled,
  EnrollmentRequest,
  MapReading,
  PeerDescription,
  PeerService,
  ServiceDescription,
  Wait,
} from '../../src/api/service.ts';
import type { ConnectOptions, KnownService } from '../../src/app/tools.ts';
import type { Report } from '../../src/contract/health.ts';
import type { PathSignals } from '../../src/contract/paths.ts';
import type { KeyProof } from '../../src/core/crypto/identity.ts';
import type { PublicKey } from '../../src/core/crypto/keys.ts';
import type { Secret } from '../../src/core/crypto/secret.ts';
import type { Reachability } from '../../src/core/health/report/compose-report.ts';
import { features } from '../../src/core/map/features.ts';
import type { NetworkMap, PeerId } from '../../src/core/map/model.ts';
import type { Prefix } from '../../src/core/net/cidr.ts';

/** One reply to a request for the map. The service uses them in order, and repeats the last one. */
export type MapReply = (revision: string | null, wait: Wait | undefined) => MapReading | Promise<MapReading>;

function unexpected(): never {
  throw new Error('unexpected call');
}

/**
 * A service in memory: it records the requests of one host, and a test sets its replies. A reply
 * that throws is a refusal.
 */
export class SimulatedService {
  /** The requests for the map. */
  readonly mapRequests: {
    readonly revision: string | null;
    /** The map that a reply with changes alone may build on. */
    readonly base: NetworkMap | null;
    readonly wait: Wait | undefined;
    readonly receipt?: string | null;
  }[] = [];
  mapReplies: MapReply[] = [];
  /** The options of the last client. */
  connectOptions: ConnectOptions | undefined;
  /** The service that the last client was created for. */
  knownService: KnownService | undefined;
  /** The description of the service; a request with a signal waits until that aborts. */
  onDescribe: (etag: string | null, signal: AbortSignal | undefined) => Promise<ServiceDescription | null> = (
    _,
    signal,
  ) =>
    new Promise((resolve, reject) => {
      if (signal === undefined) resolve({ features, etag: null });
      else signal.addEventListener('abort', () => reject(signal.reason));
    });
  /** The withdrawn prefixes that were received, in order. */
  readonly withdrawn: (readonly Prefix[])[] = [];
  onWithdraw: (prefixes: readonly Prefix[]) => unknown = () => {};
  /** The statements whether the connector masquerades, in order. */
  readonly announcedMasquerading: boolean[] = [];
  /** The tags of network secrets that were received, in order. */
  readonly announcedTags: (string | null)[] = [];
  /** Returns whether the service supports tags. */
  onSecretTag: (tag: string | null) => boolean | Promise<boolean> = () => true;
  /** The keys that were accepted for the host, in order. */
  readonly registeredKeys: { readonly publicKey: PublicKey; readonly proof: KeyProof | null }[] = [];
  /** Returns whether the service supports a change of the key. */
  onRegisterKey: (publicKey: PublicKey) => boolean | Promise<boolean> = () => true;
  /** The descriptions of the host that were received, in order. */
  readonly descriptions: PeerDescription[] = [];
  onDescribePeer: (description: PeerDescription) => unknown = () => {};
  /** The reports that were received, in order. */
  readonly reports: Report[] = [];
  /** What the host stated about direct paths, in order. */
  readonly pathSignals: PathSignals[] = [];
  onPathSignals: (signals: PathSignals) => void = () => {};
  /** The signal that ends the last report. */
  reportSignal: AbortSignal | undefined;
  onReport: (report: Report) => Reachability | Promise<Reachability> = () => ({ reachableBy: 1, witnesses: 1 });
  onEnroll: (request: EnrollmentRequest) => Enrolled = unexpected;
  /** Returns whether the service removes the host; gets the token of the request. */
  onRemovePeer: (token: Secret) => boolean = unexpected;

  /** The client of a host. */
  connect(): PeerService {
    return {
      enroll: async (request) => this.onEnroll(request),
      announceMasquerading: async (_network, _peer, _token, masquerades) => {
        this.announcedMasquerading.push(masquerades);
      },
      announceSecret: async (_network, _peer, _token, tag) => {
        const isKnown = await this.onSecretTag(tag);
        this.announcedTags.push(tag);
        return isKnown;
      },
      changeKey: async (_network, _peer, _token, publicKey, proof) => {
        const isKnown = await this.onRegisterKey(publicKey);
        if (isKnown) this.registeredKeys.push({ publicKey, proof });
        return isKnown;
      },
      describePeer: async (_network, _peer, _token, description) => {
        await this.onDescribePeer(description);
        this.descriptions.push(description);
      },
      removePeer: async (_network, _peer, token) => this.onRemovePeer(token),
      report: async (_network, _peer, _token, report, signal) => {
        this.reportSignal = signal;
        const reply = await this.onReport(report);
        this.reports.push(report);
        return reply;
      },
      sendPathSignals: async (_network, _token, signals) => {
        this.onPathSignals(signals);
        this.pathSignals.push(signals);
        return true;
      },
      withdraw: async (_network, _peer, _token, prefixes) => {
        await this.onWithdraw(prefixes);
        this.withdrawn.push(prefixes);
      },
      readMap: async (_network, _token, known, wait, receipt) => {
        const base = typeof known === 'string' ? null : known;
        const revision = base === null ? (known as string | null) : base.revision;
        this.mapRequests.push({ revision, base, wait, ...(receipt && { receipt }) });
        const reply = this.mapReplies.length > 1 ? this.mapReplies.shift() : this.mapReplies[0];
        if (!reply) throw new Error('the test prepared no reply');
        return reply(revision, wait);
      },
    };
  }
}

/** Replies with this map, or that the given revision is current. */
export function answerWith(map: NetworkMap, waited = false): MapReply {
  return (revision) => ({ map: map.revision !== null && map.revision === revision ? null : map, waited });
}

/** Replies with this map, and with the ids of peers that are gone. */
export function answerRemoving(map: NetworkMap, removed: readonly PeerId[]): MapReply {
  return () => ({ map, removed, waited: false });
}

/** Fails each request. */
export function fail(error: unknown): MapReply {
  return () => {
    throw error;
  };
}
