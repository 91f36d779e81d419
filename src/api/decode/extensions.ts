import * as z from 'zod';
import { AuditEntry as AuditEntryReply, AuditLink } from '../../contract/audit.ts';
import { OpenSession as OpenSessionReply } from '../../contract/auth.ts';
import { DeviceCode } from '../../contract/device-code.ts';
import { EnrollmentKeyOfNetwork } from '../../contract/enrollment-key.ts';
import { Event as EventReply } from '../../contract/event.ts';
import { PeerHealth as PeerHealthReply, PeerPath } from '../../contract/health.ts';
import { OwnDeviceKey } from '../../contract/own-device.ts';
import { NewPersonalToken, PersonalToken } from '../../contract/personal-token.ts';
import { PendingHost as PendingHostReply } from '../../contract/removal.ts';
import {
  NetworkRules as NetworkRulesReply,
  RuleDecision as RuleDecisionReply,
  RulesPreview as RulesPreviewReply,
} from '../../contract/rules.ts';
import { FactorsRemoved } from '../../contract/second-factor.ts';
import { identifier } from '../../contract/text.ts';
import { PasswordChange as PasswordChangeReply, SessionsEnded, User as UserReply } from '../../contract/user.ts';
import { type Decoder, listOf, optionalResource, type Received, resource } from './resource.ts';

// The extensions of the contract as a client reads them: the parts that it uses, and the
// differences of earlier and later versions.

const KeyOfNetwork = EnrollmentKeyOfNetwork.pick({ id: true, name: true, network: true });
export type KeyOfNetwork = Received<z.output<typeof KeyOfNetwork>>;

export type User = Received<UserReply>;
export const decodeUser = resource(UserReply);
export const decodeUsers = listOf(UserReply, 'users');

/** With the revoked enrolment keys; absent if none were to be revoked. */
export const decodeChangedUser = resource(UserReply.extend({ keys_revoked: z.array(KeyOfNetwork).optional() }));

/** Null for an unknown number, as of ended sessions. */
export const decodeFactorsRemoved = optionalResource(
  FactorsRemoved.extend({ factors_removed: FactorsRemoved.shape.factors_removed.nullable() }),
);

/** Null where the service does not report the keys. */
export const decodeUserRemoval = optionalResource(z.object({ keys_revoked: z.array(KeyOfNetwork).nullable() }));

const { sessions_ended, access_token, expires_at } = PasswordChangeReply.shape;
/** Null for unreported parts. The session replaces the one of the call, which ended. */
export const decodePasswordChange = optionalResource(
  z.object({
    sessions_ended: sessions_ended.nullable(),
    tokens_revoked: z.array(PersonalToken).nullable(),
    users_made: z.array(UserReply).nullable(),
    keys_made: z.array(KeyOfNetwork).nullable(),
    access_token,
    expires_at,
  }),
);

const OpenSession = OpenSessionReply.extend({
  device_name: OpenSessionReply.shape.device_name.default(''),
  is_current: z.boolean().catch(false),
  last_used_at: OpenSessionReply.shape.last_used_at.nullable(),
});
export type OpenSession = Received<z.output<typeof OpenSession>>;
export const decodeSessions = listOf(OpenSession, 'sessions');
/** Null for an unknown number: the reply of the first attempt was lost. */
export const decodeSessionsEnded = optionalResource(
  SessionsEnded.extend({ sessions_ended: SessionsEnded.shape.sessions_ended.nullable() }),
);

export type Token = Received<PersonalToken>;
export const decodeTokens = listOf(PersonalToken, 'tokens');
/** The service shows the value once, so it must be there. */
export const decodeNewToken = resource(NewPersonalToken);
export const decodeOwnDeviceKey = resource(OwnDeviceKey);

const details = z.record(z.string(), z.unknown()).default({});

const AuditEntry = AuditEntryReply.extend({ details });
export type AuditEntry = Received<z.output<typeof AuditEntry>>;
export const decodeAudit = listOf(AuditEntry, 'audit');
/** As sent: the links cover every field. */
export const decodeAuditChain = listOf(AuditLink, 'links');

const EventPeer = EventReply.shape.peer.unwrap();
/** A later version may have further types. */
const Event = EventReply.extend({
  type: z.string().meta({ maxLength: 64 }),
  peer: EventPeer.extend({ id: identifier.nullable() }).nullable(),
  details,
});
export type Event = Received<z.output<typeof Event>>;
export const decodeEvents = listOf(Event, 'events');

const PendingHost = PendingHostReply.extend({
  acknowledged_revision: PendingHostReply.shape.acknowledged_revision.catch(null),
  last_seen: PendingHostReply.shape.last_seen.catch(null),
  version: z.string().meta({ maxLength: 120 }).optional().catch(undefined),
  deletion: PendingHostReply.shape.deletion.unwrap().unwrap().optional().catch(undefined),
});
/** A host that has not applied the last removal of a peer. */
export type PendingHost = Received<z.output<typeof PendingHost>>;
export const decodeRemovals = resource(z.object({ pending: z.array(PendingHost) }), 'removals');

const { state, reachable_by, witnesses, last_seen, version } = PeerHealthReply.shape;
const Path = PeerPath.pick({ peer: true, path: true });
/** Words of a later version become unknown. */
const PeerHealth = z.object({
  id: identifier,
  state: state.catch('unknown'),
  reachable_by: reachable_by.catch(0),
  witnesses: witnesses.catch(0),
  last_seen: last_seen.catch(null),
  version: version.catch(null),
  paths: z.array(Path.nullable().catch(null)).catch([]),
});
const decodePeers = resource(z.object({ peers: z.array(PeerHealth) }), 'health');
/** What hosts observe of a peer; `paths` is how it reaches others, by its own report. */
export type PeerHealth = Received<Omit<z.output<typeof PeerHealth>, 'paths'> & { paths: z.output<typeof Path>[] }>;
export const decodeHealth: Decoder<PeerHealth[]> = (body, source) =>
  decodePeers(body, source).peers.map(({ paths, ...peer }) => ({
    ...peer,
    paths: paths.flatMap((path) => path ?? []),
  }));

export type NetworkRules = Received<NetworkRulesReply>;
export const decodeRules = resource(NetworkRulesReply, 'rules');
export type RulesPreview = Received<RulesPreviewReply>;
export const decodeRulesPreview = resource(RulesPreviewReply, 'preview');
export type RuleDecision = Received<RuleDecisionReply>;
export const decodeRuleDecision = resource(RuleDecisionReply, 'decision');

export const decodeDeviceCode = resource(DeviceCode);
