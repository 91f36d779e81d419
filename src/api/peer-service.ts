import type { ChangePeer } from '../contract/peer.ts';
import { CannotReport, CannotWithdraw, Refused } from '../core/errors/index.ts';
import type { Feature } from '../core/map/features.ts';
import type { Id, PeerId } from '../core/map/model.ts';
import { formatEndpoint } from '../core/net/endpoint.ts';
import type { ServiceAddress } from '../core/net/service-address.ts';
import { aliases } from './aliases.ts';
import { checkRequest } from './check-request.ts';
import { Field } from './decode/field.ts';
import { messageKinds } from './decode/messages.ts';
import { enroll } from './enroll.ts';
import type { Call, Reply } from './http/attempt.ts';
import { readIfJson } from './http/body.ts';
import { HttpClient } from './http/client.ts';
import type { ClientOptions } from './http/client-options.ts';
import { readMap } from './read-map.ts';
import type { PeerService } from './service.ts';

const ownRemedies = {
  401: 'the tunnel stays as it is; if this host was removed from the network, "cpn join" with a new key brings it back; if it uses a personal token, join again with the same key and --token-file',
  403: 'the tunnel stays as it is; ask an admin whether this host may still be in the network',
  404: 'the tunnel stays as it is; ask an admin whether the network or this host was removed',
  410: 'a tunnel goes down once its own control plane has stated the deletion twice; it comes up automatically after a restore',
};
/** A host that leaves removes the tunnel anyway. */
const removalRemedies = {
  401: 'ask an admin whether the peer is still in the network',
  403: 'ask an admin to remove the peer',
  405: 'this service cannot remove peers; ask its operator',
};
const unknownExtension =
  'if the network changed, type "cpn reconcile" and try again; otherwise this service cannot withdraw routes: ask an admin to remove them from this connector';
const withdrawRemedies = {
  ...ownRemedies,
  403: unknownExtension,
  404: unknownExtension,
  405: unknownExtension,
  422: unknownExtension,
};

const askAdmin = 'nothing was changed here; ask an admin to type "cpn peer update"';
const describeRemedies = {
  ...ownRemedies,
  403: askAdmin,
  404: askAdmin,
  405: askAdmin,
  422: 'nothing was changed here',
};

const undescribed = 'its description has no such operation';

/** The statuses of a service without the operation. */
const noOperation: readonly number[] = [404, 405];
/** The statuses of a service without the operation or the field. */
const unknownToService: readonly number[] = [403, 404, 405, 422];

interface PeerClientOptions extends ClientOptions {
  /** Called if a described operation is answered as if it did not exist. */
  readonly onAbsent?: () => void;
  /** The id of this start of the daemon; null for a command. */
  readonly instance?: string | null;
  /** True if the tunnel is down because the network was deleted. */
  readonly isDeleted?: boolean;
  /** True if this host applies the rules of a closed network. */
  readonly enforcesRules?: boolean;
  /** True if this host takes the messages about direct paths. */
  readonly takesPaths?: boolean;
}

/**
 * A host's operations on a service, with only these extensions of the public contract. Throws
 * InvalidValue for an address that must receive no request.
 */
export function connectPeerService(
  address: ServiceAddress,
  features: readonly Feature[],
  {
    onAbsent = () => {},
    instance = null,
    isDeleted = false,
    enforcesRules = false,
    takesPaths = false,
    ...options
  }: PeerClientOptions = {},
): PeerService {
  const http = new HttpClient(address, options);
  const has = (feature: Feature) => features.includes(feature);
  /** A change of a peer, or its removal, by an extension. */
  const change = async (call: Call): Promise<Reply> => {
    try {
      const answer = await http.call(call);
      if (noOperation.includes(answer.status)) onAbsent();
      return answer;
    } catch (error) {
      if (error instanceof Refused && noOperation.includes(error.status)) onAbsent();
      throw error;
    }
  };
  return {
    enroll: (request) => enroll(http, request, has, enforcesRules),

    readMap: (network, token, known, wait, receipt = null) =>
      readMap(http, {
        ...{ network, token, remedies: ownRemedies },
        known: has('map-revision') ? known : null,
        changes: has('map-revision') && has('map-changes'),
        listsRemoved: has('map-revision') && has('map-removed'),
        hasOwnTag: has('map-etag'),
        instance: has('map-instance') ? instance : null,
        deletion: has('map-deletion') ? (isDeleted ? 'applied' : 'follow') : null,
        receipt,
        messageKinds: has('map-messages') && instance !== null ? messageKinds(takesPaths && has('peer-paths')) : [],
        // A wait's signal applies to any call.
        wait: has('map-revision') && has('map-wait') ? wait : wait?.signal && { seconds: null, signal: wait.signal },
        onRefused: ({ message }) => options.onRetry?.({ attempt: 1, delayMs: 0, problem: message }),
      }),

    async withdraw(network, peer, token, prefixes) {
      if (!has('peer-withdrawn')) {
        if (prefixes.length > 0) throw new CannotWithdraw(address.url, 'it does not describe "withdrawn"');
        return;
      }
      const { body, reading } = await change({
        what: `withdrawing ${prefixes.join(', ') || 'nothing'} of peer ${peer} of network ${network}`,
        method: 'PATCH',
        path: pathOf(network, peer),
        bearer: token,
        json: await checkChange({ withdrawn: [...prefixes] }),
        repeatable: true,
        answered: true,
        remedies: withdrawRemedies,
      });
      // Services ignore fields that they do not support.
      const isApplied = Field.ofReply(body, reading).find(aliases.peer.withdrawn) !== null;
      if (!isApplied && prefixes.length > 0) throw new CannotWithdraw(reading.url, 'it ignores "withdrawn"');
    },

    async announceMasquerading(network, peer, token, masquerades) {
      if (!has('peer-masquerades')) return;
      await change({
        what: `stating whether peer ${peer} of network ${network} masquerades`,
        method: 'PATCH',
        path: pathOf(network, peer),
        bearer: token,
        json: await checkChange({ masquerades }),
        repeatable: true,
        answered: true,
        remedies: withdrawRemedies,
      });
    },

    async announceSecret(network, peer, token, tag) {
      if (!has('peer-secret-tag')) return false;
      try {
        await change({
          what: `announcing the network secret's tag of peer ${peer} of network ${network}`,
          method: 'PATCH',
          path: pathOf(network, peer),
          bearer: token,
          json: await checkChange({ network_secret_tag: tag }),
          repeatable: true,
          answered: false,
          remedies: ownRemedies,
        });
        return true;
      } catch (error) {
        if (error instanceof Refused && unknownToService.includes(error.status)) return false;
        throw error;
      }
    },

    async changeKey(network, peer, token, publicKey, proof) {
      if (!has('peer-key')) return false;
      const isProven = proof !== null && has('peer-key-proof');
      try {
        const { body, reading } = await change({
          what: `changing the key of peer ${peer} of network ${network}`,
          method: 'PATCH',
          path: pathOf(network, peer),
          bearer: token,
          json: await checkChange({ public_key: publicKey, ...(isProven && { key_proof: proof }) }),
          repeatable: true,
          answered: true,
          remedies: ownRemedies,
        });
        // Services ignore fields that they do not support.
        return Field.ofReply(body, reading).find(aliases.peer.publicKey)?.value === publicKey;
      } catch (error) {
        if (error instanceof Refused && noOperation.includes(error.status)) return false;
        throw error;
      }
    },

    async describePeer(network, peer, token, { name, endpoint }) {
      const wanted = endpoint && formatEndpoint(endpoint);
      const isDescribed = (name === undefined || has('peer-name')) && (wanted === undefined || has('peer-endpoint'));
      if (!isDescribed) throw new CannotReport(address.url, undescribed);
      const { body, reading } = await change({
        what: `changing ${name === undefined ? 'the endpoint' : 'name or endpoint'} of peer ${peer} of network ${network}`,
        method: 'PATCH',
        path: pathOf(network, peer),
        bearer: token,
        json: await checkChange({
          ...(name !== undefined && { name }),
          ...(wanted !== undefined && { endpoint: wanted }),
        }),
        repeatable: true,
        answered: true,
        remedies: describeRemedies,
      });
      // Services ignore fields that they do not support.
      const reply = Field.ofReply(body, reading);
      const ignored = [
        ...(name === undefined || reply.find(aliases.peer.name)?.value === name ? [] : ['name']),
        ...(wanted === undefined || (reply.find(aliases.peer.endpoint)?.value ?? null) === wanted ? [] : ['endpoint']),
      ];
      if (ignored.length > 0) throw new CannotReport(reading.url, `it ignores ${ignored.join(' and ')}`);
    },

    async removePeer(network, peer, token) {
      if (!has('peer-removal')) return false;
      const { body } = await change({
        what: `removing peer ${peer} of network ${network}`,
        method: 'DELETE',
        path: pathOf(network, peer),
        bearer: token,
        repeatable: true,
        goneIsDone: true,
        answered: true,
        receive: readIfJson,
        remedies: removalRemedies,
      });
      // Our control plane's reply to a removal. Another body, or none, may be a captive portal's.
      return (body as { data?: unknown } | null)?.data === null;
    },

    async report(network, peer, token, { map, refused, ...report }, signal) {
      if (!has('peer-report')) return null;
      // Unchecked: for what it composes itself, the daemon would load all the contract's schemas.
      const { body, reading } = await change({
        what: `the report of peer ${peer} of network ${network}`,
        method: 'POST',
        path: `${pathOf(network, peer)}/report`,
        bearer: token,
        // Without these two, it is of an older version, which uses another relay at times.
        json: {
          ...report,
          ...(has('peer-follows-relay') && { follows_relay: true }),
          ...(has('peer-enforces-rules') && enforcesRules && { enforces_rules: true }),
          ...(has('peer-map') && map && { map }),
          ...(has('peer-refused') && refused && { refused }),
        },
        repeatable: true,
        answered: true,
        ...(signal && { wait: { seconds: null, signal } }),
        remedies: ownRemedies,
      });
      const reply = Field.ofReply(body, reading);
      return {
        reachableBy: reply.need(aliases.reportReply.reachableBy).integer(),
        witnesses: reply.need(aliases.reportReply.witnesses).integer(),
      };
    },

    async sendPathSignals(network, token, signals, signal) {
      if (!has('peer-paths')) return false;
      // Unchecked, like a report.
      await change({
        what: `the paths of network ${network}`,
        method: 'POST',
        path: `/api/networks/${encodeURIComponent(network)}/peers/self/paths`,
        bearer: token,
        json: signals,
        repeatable: true,
        answered: false,
        ...(signal && { wait: { seconds: null, signal } }),
        remedies: ownRemedies,
      });
      return true;
    },
  };
}

/** These schemas take longer to load than all else, and most commands change no peer. */
async function checkChange(change: ChangePeer): Promise<ChangePeer> {
  const { ChangePeer } = await import('../contract/peer.ts');
  return checkRequest(ChangePeer, change);
}

function pathOf(network: Id, peer: PeerId): string {
  return `/api/networks/${encodeURIComponent(network)}/peers/${encodeURIComponent(peer)}`;
}
