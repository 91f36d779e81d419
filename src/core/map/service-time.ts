/** The clock of a service, as a reply showed it, next to the clock of this host that is never set. */
export interface ServiceClock {
  /** Milliseconds since 1970 by the clock of the service. */
  readonly service: number;
  /** Seconds since this host was started, those asleep included. */
  readonly uptime: number;
}

/** What this host can read of its own clocks. */
export interface HostClocks {
  readonly now: number;
  readonly uptime: number;
}

/** Milliseconds that replies differ by the time they take, and by the full seconds of their Date. */
const tolerance = 2000;

/**
 * The time of the service, in milliseconds since 1970. The wall clock counts only until the service answers for the first time after a
 * start of the host, and never for less than the last time that was saved.
 */
export function serviceTimeOf(clock: ServiceClock | undefined, { now, uptime }: HostClocks, saved = 0): number {
  if (clock === undefined || uptime < clock.uptime) return Math.max(now, saved);
  return clock.service + (uptime - clock.uptime) * 1000;
}

/** The clock after a reply: the one before, unless the reply shows another time. */
export function adjustClock(
  clock: ServiceClock | undefined,
  servedAt: number | undefined,
  uptime: number,
): ServiceClock | undefined {
  if (servedAt === undefined) return clock;
  const isKept =
    clock !== undefined &&
    uptime >= clock.uptime &&
    Math.abs(serviceTimeOf(clock, { now: 0, uptime }) - servedAt) <= tolerance;
  return isKept ? clock : { service: servedAt, uptime };
}
