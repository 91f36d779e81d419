import type { Generated } from 'kysely';
import type { Peer } from '../../contract/peer.ts';

/** JSON is stored as text, and a boolean as 0 or 1. */
type Kind = 'text' | 'number' | 'boolean' | 'json';
type KindOf<Value> = Value extends string
  ? 'text'
  : Value extends number
    ? 'number'
    : Value extends boolean
      ? 'boolean'
      : Value extends object
        ? 'json'
        : never;

/**
 * Columns named and valued as a field of the contract, which is absent for null or 0.
 * The row type, queries, replies and changes of a peer derive from this table.
 */
export const fieldColumns = {
  identity_key: 'text',
  key_proof: 'json',
  network_secret_tag: 'text',
  /** Only if the peer is reached only through connectors. */
  profile: 'json',
  /** When a connector began to serve. */
  serving_since: 'text',
  priority: 'number',
  /** When an admin took it out of the map; null if it is in the map or only expired. */
  suspended_at: 'text',
  expires_at: 'text',
  /** For how many hours each login of its user keeps it; 0 if logins do not move its expiry. */
  reauth_hours: 'number',
  /**
   * Since when the peer waits for approval; null if it does not. It is suspended too, so that
   * earlier versions on the same database keep it out of the map.
   */
  awaiting_approval: 'text',
  /** 1 if the host uses the relay of the network. */
  follows_relay: 'boolean',
  /** 1 if the connector states that it masquerades. */
  masquerades: 'boolean',
  /** Null for none. */
  tags: 'json',
  /** 1 if the host states that it enforces rules. */
  enforces_rules: 'boolean',
} as const satisfies { readonly [Name in keyof Peer]?: KindOf<NonNullable<Peer[Name]>> };

export type FieldColumn = keyof typeof fieldColumns;

export type FieldColumns = {
  [Name in FieldColumn]: (typeof fieldColumns)[Name] extends 'number' | 'boolean' ? Generated<number> : string | null;
};

export const listedFieldColumns = Object.entries(fieldColumns) as readonly (readonly [FieldColumn, Kind])[];
