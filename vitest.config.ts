import { defineConfig } from 'vitest/config';
import { ProjectOrder } from './scripts/run-tests/project-order.ts';

/** Tests that start simulated hosts: slower, and with deadlines of their own inside. */
const LAB_TESTS = ['test/{lab,e2e,model,host,hostile,local,secrets,packets,nat}/**/*.test.ts'];

/** Lab tests whose results are a table too. */
const FAULT_TESTS = ['test/faults/**/*.test.ts'];

/** Tests that start the program or scripts, build packages, or need a disk of their own: slower than those of functions. */
const PROGRAM_TESTS = [
  'test/{scripts,packaging,app/processes}/**/*.test.ts',
  'test/{cli/{commands/control-plane-*,output/lost-output},store/{crash,failing-disk}}.test.ts',
];

/** It loads the schemas of the contract again, whose names zod keeps: other tests of the same process would describe them otherwise. */
const ALONE = ['test/control-plane/made-up-peer-field.test.ts'];

/** Properties that hold for whatever comes, whose executions are counted. */
const FUZZ_TESTS = ['test/fuzz/**/*.test.ts'];

/** Tests of the console in a browser, which all of them share. */
const BROWSER_TESTS = ['test/browser/**/*.test.ts'];

/** An emulated machine takes more than one core: tests with deadlines come before. */
const MACHINE_TESTS = ['test/vm/**/*.test.ts'];

/**
 * Tests of the control plane run on SQLite, but for those of PostgreSQL alone. Those where the store matters run on PostgreSQL too:
 * statements, transactions, locks, migrations, push, several instances, and one request of every operation.
 */
const CONTROL_PLANE_TESTS = ['test/control-plane/**/*.test.ts'];
const POSTGRES_TESTS = [
  'test/control-plane/store/postgres/{announced-changes,crash,pooler,readiness,replicas,serve,start,time,transact}.test.ts',
];
const TESTS_OF_BOTH_STORES = [
  'test/control-plane/audit/*.test.ts',
  'test/control-plane/{all-or-nothing,held-changes,made-up-peer-field,reset-owner,secrets,serve,simultaneous-changes}.test.ts',
  'test/control-plane/push/{conditional-requests,delta,held-reads,long-poll,peer-messages,snapshot,waiting-end}.test.ts',
  'test/control-plane/store/{account-queries,clamp-instants,crash,health-queries,peer-queries,restore,migrations/*}.test.ts',
  'test/control-plane/health/{clock-set-back,deliver-events,delivery-crash,evaluate,held-health,instances}.test.ts',
  'test/control-plane/health/{lost-connections,presence,refused-connections,relay,removals,report,traffic-history}.test.ts',
  'test/control-plane/http/{every-field,held-requests}.test.ts',
  'test/control-plane/paths/{path-events,replicas}.test.ts',
  'test/control-plane/http/routes/{accounts,audit,device-codes,enrollment,enrollment-keys,events,login-addresses}.test.ts',
  'test/control-plane/http/routes/{network-limits,operations,paging,route-dns,rules,second-factors,session}.test.ts',
  'test/control-plane/oidc/{refresh,single-sign-on,withdrawn-access}.test.ts',
  'test/control-plane/service/{approval,deletions,former-labels,identities,key-limits,own-devices,replacement,retention,retried-counts,rules-confirmation}.test.ts',
];

/** Tests have deadlines of their own; these only end one that hangs, also on a machine with much else to do. */
const patient = { testTimeout: 180_000, hookTimeout: 180_000, expect: { poll: { timeout: 60_000 } } };

/** One process runs many files one after another, and loads what they have in common once. */
const together = { ...patient, isolate: false };

export default defineConfig({
  test: {
    environment: 'node',
    retry: 0,
    allowOnly: false,
    // Lab tests mostly wait, for handshakes and deadlines: one takes a quarter of a core.
    maxWorkers: 8,
    // Long and waiting files first, and at the end many short ones.
    sequence: { sequencer: ProjectOrder },
    passWithNoTests: false,
    // scripts/test coverage prints it; a failed test does not hide it.
    coverage: { provider: 'v8', include: ['src/**/*.ts'], reporter: ['json-summary'], reportOnFailure: true },
    projects: [
      { test: { name: 'programs', include: [...PROGRAM_TESTS, ...ALONE], ...patient } },
      { test: { name: 'lab', include: LAB_TESTS, globalSetup: 'test/hostile/report.ts', ...together } },
      { test: { name: 'faults', include: FAULT_TESTS, globalSetup: 'test/faults/report.ts', ...together } },
      { test: { name: 'browser', include: BROWSER_TESTS, globalSetup: 'test/browser/chromium-setup.ts', ...together } },
      { test: { name: 'fuzz', include: FUZZ_TESTS, globalSetup: 'test/fuzz/report.ts', ...patient } },
      {
        test: {
          name: 'postgres',
          include: [...POSTGRES_TESTS, ...TESTS_OF_BOTH_STORES],
          globalSetup: 'test/control-plane/postgres-setup.ts',
          ...together,
        },
      },
      { test: { name: 'sqlite', include: CONTROL_PLANE_TESTS, exclude: [...POSTGRES_TESTS, ...ALONE], ...together } },
      {
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: [
            ...[...PROGRAM_TESTS, ...LAB_TESTS, ...FAULT_TESTS, ...FUZZ_TESTS],
            ...[...CONTROL_PLANE_TESTS, ...BROWSER_TESTS, ...MACHINE_TESTS],
          ],
          ...together,
        },
      },
      { test: { name: 'vm', include: MACHINE_TESTS, sequence: { groupOrder: 1 }, ...patient } },
    ],
  },
});
