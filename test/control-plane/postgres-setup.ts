/**
 * Runs around the tests of the control plane on PostgreSQL: one server for all of them.
 *
 * @module
 */
import type { TestProject } from 'vitest/node';
import { type PostgresAddress, startPostgres } from './postgres-server.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the control planes of this run keep their data; missing where that is a folder. */
    postgres?: PostgresAddress;
  }
}

/** Vitest's global setup; returns what runs after the tests. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  // A test that crashes PostgreSQL starts one of its own: nothing here has to survive that.
  const server = await startPostgres({ settings: ['max_connections=500', 'fsync=off', 'full_page_writes=off'] });
  const { socket, port, user, password } = server;
  project.provide('postgres', { socket, port, user, password });
  return server.remove;
}
