/** The clock of a service at a reply, and this host's monotonic clock at that time. */
export interface ServiceClock {
  /** Milliseconds since 1970 by the clock of the service. */
  readonly service: number;
  /** Seconds since this host was started, including time asleep. */
  readonly uptime: number;
}

/** The readings of this host's clocks. */
export interface HostClocks {
  readonly now: number;
  readonly uptime: number;
}

/** Milliseconds by which replies differ: they travel, and their Date has whole seconds. */
const tolerance = 2000;

/**
 * Returns the service's time, in milliseconds since 1970, never before the last saved time. The
 * wall clock counts only from the host's start to the service's first reply.
 */
export function serviceTimeOf(clock: ServiceClock | undefined, { now, uptime }: HostClocks, saved = 0): number {
  if (clock === undefined || uptime < clock.uptime) return Math.max(now, saved);
  return clock.service + (uptime - clock.uptime) * 1000;
}

/** Returns the clock after a reply: the same clock, unless the reply shows another time. */
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
