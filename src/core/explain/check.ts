/** The checks along the path of a packet, in order. */
export type CheckName =
  | 'domain'
  | 'name'
  | 'network'
  | 'path'
  | 'route'
  | 'allowed_ips'
  | 'rules'
  | 'rp_filter'
  | 'firewall'
  | 'endpoint'
  | 'handshake'
  | 'mtu'
  | 'answers';

export interface Check {
  readonly check: CheckName;
  /** False if the packet stops there; null if that is unknown. */
  readonly ok: boolean | null;
  readonly detail: string;
  /** What to do next; null if the check passes, or if nothing can be done. */
  readonly remedy: string | null;
}

export function passes(check: CheckName, detail: string): Check {
  return { check, ok: true, detail, remedy: null };
}

export function stops(check: CheckName, detail: string, remedy: string): Check {
  return { check, ok: false, detail, remedy };
}

/** The result is unknown, or cpn is not involved. */
export function inconclusive(check: CheckName, detail: string, remedy: string | null = null): Check {
  return { check, ok: null, detail, remedy };
}

export function findStop(checks: readonly Check[]): Check | null {
  return checks.find(({ ok }) => ok === false) ?? null;
}
