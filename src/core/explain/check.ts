/** What a packet meets on its way, in this order. */
export type CheckName =
  | 'network'
  | 'route'
  | 'allowed_ips'
  | 'rp_filter'
  | 'firewall'
  | 'endpoint'
  | 'handshake'
  | 'mtu'
  | 'answers';

/** What became of a packet at one place of its way. */
export interface Check {
  readonly check: CheckName;
  /** False where it stops; null where that is unknown. */
  readonly ok: boolean | null;
  readonly detail: string;
  /** What to do next; null where it passes, or where there is nothing to do. */
  readonly remedy: string | null;
}

export function passes(check: CheckName, detail: string): Check {
  return { check, ok: true, detail, remedy: null };
}

export function stops(check: CheckName, detail: string, remedy: string): Check {
  return { check, ok: false, detail, remedy };
}

/** The result is unknown, or cpn has no part in it. */
export function inconclusive(check: CheckName, detail: string, remedy: string | null = null): Check {
  return { check, ok: null, detail, remedy };
}

/** Where the packet stops: at the first check that says so; null when at none. */
export function findStop(checks: readonly Check[]): Check | null {
  return checks.find(({ ok }) => ok === false) ?? null;
}
