import * as z from 'zod';
import { identifier, instant } from './text.ts';

/** The number and length of the intervals of traffic history: one day in total. */
export const trafficIntervals = 48;
export const trafficIntervalSeconds = 1800;

const rates = z.array(z.number().min(0)).length(trafficIntervals);

/** The rates of hosts in each interval, oldest first. */
export const TrafficSeries = z
  .object({
    received: rates.meta({ description: 'Bytes a second in each interval, the oldest first.' }),
    sent: rates,
  })
  .meta({ id: 'TrafficSeries' });
export type TrafficSeries = z.infer<typeof TrafficSeries>;

const frame = {
  interval_seconds: z.literal(trafficIntervalSeconds),
  until: instant.meta({ description: 'The end of the last interval, which is not over yet.' }),
};

/** The traffic of one peer in the last 24 hours. */
export const PeerTraffic = TrafficSeries.extend(frame).meta({ id: 'PeerTraffic' });
export type PeerTraffic = z.infer<typeof PeerTraffic>;

export const mostBusiest = 10;

/** The traffic of a network in the last 24 hours. */
export const NetworkTraffic = z
  .object({
    ...frame,
    total: TrafficSeries.meta({
      description: 'Of all hosts that report: a packet from one to another counts at both.',
    }),
    busiest: z
      .array(TrafficSeries.extend({ peer: identifier }))
      .max(mostBusiest)
      .meta({ description: 'The hosts with the most traffic, the busiest first.' }),
  })
  .meta({ id: 'NetworkTraffic' });
export type NetworkTraffic = z.infer<typeof NetworkTraffic>;
