/** A difference between desired and actual state, for users and scripts; never with a secret. */
export interface Change {
  readonly action: 'add' | 'remove' | 'update';
  /** `api` is the address of the control plane. */
  readonly kind:
    | 'api'
    | 'interface'
    | 'address'
    | 'peer'
    | 'route'
    | 'rule'
    | 'sysctl'
    | 'firewall'
    | 'dns'
    | 'hosts'
    | 'file';
  readonly target: string;
  readonly before: ChangeValue;
  readonly after: ChangeValue;
  /** For display only; no decision depends on it. */
  readonly reason: string;
}

export type ChangeValue =
  | string
  | number
  | null
  | readonly string[]
  | { readonly [field: string]: string | number | null | readonly string[] };

type ChangeKind = Change['kind'];

export function added(kind: ChangeKind, target: string, after: ChangeValue, reason: string): Change {
  return { action: 'add', kind, target, before: null, after, reason };
}

export function removed(kind: ChangeKind, target: string, before: ChangeValue, reason: string): Change {
  return { action: 'remove', kind, target, before, after: null, reason };
}

export function updated(
  kind: ChangeKind,
  target: string,
  before: ChangeValue,
  after: ChangeValue,
  reason: string,
): Change {
  return { action: 'update', kind, target, before, after, reason };
}
