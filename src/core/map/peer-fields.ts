/**
 * How a service sends a field of a peer: its name in the contract, and the form of its value. A
 * value in another form is ignored, since another service may use the name for something else. A
 * wrong key or proof makes the peer unusable, and so does a text that breaks a `rule`.
 */
export type PeerField = { readonly name: string } & (
  | { readonly kind: 'text'; readonly max: number; readonly pattern?: RegExp; readonly rule?: string }
  /** An absent number means 0. An instant is in milliseconds since 1970. */
  | { readonly kind: 'number' | 'instant' }
  | { readonly kind: 'identityKey' | 'keyProof' | 'via' }
  /** Absent for false. */
  | { readonly kind: 'flag' }
  /** Absent for none. */
  | { readonly kind: 'tags' }
);

/** Optional fields of a peer: Peer, decoder, state file and administrators' output use it. */
export const peerFields = {
  /** The label by which hosts resolve it, if it is not derived from the name. */
  label: { name: 'dns_label', kind: 'text', max: 63, pattern: /^[a-z0-9]+(?:-[a-z0-9]+)*$/ },
  /** When a connector began to serve. */
  servingSince: { name: 'serving_since', kind: 'instant' },
  /** The priority that an admin gave a connector: the higher one serves. */
  priority: { name: 'priority', kind: 'number' },
  /** When the peer expires. Absent if it does not. */
  expiresAt: { name: 'expires_at', kind: 'instant' },
  /** How many hours each login of its user keeps it. Absent if logins do not move its expiry. */
  reauthHours: { name: 'reauth_hours', kind: 'number' },
  /** Since when this host waits for approval; only the map that it then reads has it. */
  awaitingApproval: { name: 'awaiting_approval', kind: 'instant' },
  /** The key with which the host proves its keys. */
  identity: { name: 'identity_key', kind: 'identityKey' },
  /** The host's proof for its public key, once that differs from the key of its enrolment. */
  proof: { name: 'key_proof', kind: 'keyProof' },
  /** Equal for hosts with the same network secret. It reveals nothing about the secret. */
  secretTag: {
    name: 'network_secret_tag',
    kind: 'text',
    max: 16,
    pattern: /^[0-9a-f]{16}$/,
    rule: 'is not 16 hexadecimal digits',
  },
  /** Set if the peer dials only one connector, through which all other peers reach it. */
  via: { name: 'via', kind: 'via' },
  /** Set if the host uses the relay that the map names: senders then keep their address. */
  followsRelay: { name: 'follows_relay', kind: 'flag' },
  /** Set by a connector that masquerades, in a network that spreads its hosts. */
  masquerades: { name: 'masquerades', kind: 'flag' },
  /** Labels by which rules select it, from an administrator or its enrolment key. */
  tags: { name: 'tags', kind: 'tags' },
  /** Set if the host applies the network's rules, by its own statement. */
  enforcesRules: { name: 'enforces_rules', kind: 'flag' },
} as const satisfies Readonly<Record<string, PeerField>>;

export type PeerFieldName = keyof typeof peerFields;

export const listedPeerFields = Object.entries(peerFields) as readonly (readonly [PeerFieldName, PeerField])[];
