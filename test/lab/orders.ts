/**
 * A test changes the behaviour of a server in a lab with orders, each a line of JSON on the server's standard input. The
 * server confirms each.
 *
 * @module
 */
import { createInterface } from 'node:readline';
import type { Process } from './process.ts';

/** For the server: calls `follow` for each order, one after the other, until its input ends; then it ends itself. */
export async function followOrders<Order>(follow: (order: Order) => void | Promise<void>): Promise<void> {
  for await (const line of createInterface({ input: process.stdin })) {
    await follow(JSON.parse(line));
    process.stdout.write('follows the order\n');
  }
  process.exit();
}

/** For the test: gives an order, and waits until the server follows it. */
export async function order(server: Process, what: unknown): Promise<void> {
  server.writeInput(`${JSON.stringify(what)}\n`);
  await server.waitForLine(/^follows the order$/);
}
