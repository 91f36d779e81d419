import { defineConfig } from 'vitest/config';

/** Tests that start simulated hosts: slower, and with deadlines of their own inside. */
const LAB_TESTS = ['test/{lab,e2e,model,host,hostile,local,secrets,packets}/**/*.test.ts'];

/** Lab tests whose results are a table too. */
const FAULT_TESTS = ['test/faults/**/*.test.ts'];

/** Tests that start the program or scripts, build packages, or need a disk of their own: slower than those of functions. */
const PROGRAM_TESTS = [
  'test/{scripts,packaging,app/processes}/**/*.test.ts',
  'test/{cli/{commands/control-plane-*,output/lost-output},store/{crash,failing-disk}}.test.ts',
];

/** Properties that hold for whatever comes, whose executions are counted. */
const FUZZ_TESTS = ['test/fuzz/**/*.test.ts'];

/** Tests of the console in a browser, which all of them share. */
const BROWSER_TESTS = ['test/browser/**/*.test.ts'];

/** An emulated machine takes both cores: it has them alone, after all the others. */
const MACHINE_TESTS = ['test/vm/**/*.test.ts'];

/**
 * Tests of the control plane run on both of its stores, but for those of one store, those that use neither, and those of what comes
 * before any row is read or written, or after: the description that is served, TLS, limits, clients that HTTP itself refuses, how replies
 * are sent and waited for, and which credentials each operation accepts, in 4,000 requests.
 */
const CONTROL_PLANE_TESTS = ['test/control-plane/**/*.test.ts'];
const POSTGRES_TESTS = [
  'test/control-plane/store/postgres/{announced-changes,crash,pooler,readiness,replicas,serve,start,time,transact}.test.ts',
];
const OTHER_THAN_POSTGRES_TESTS = [
  'test/control-plane/**/{data-folder,database-url,database-clock,concurrency,passwords,tokens,change-notifier,network-rules,address-allocation,agreement,effects}.test.ts',
  'test/control-plane/**/{description,contract-description,openapi,tls,hostile-clients,full-disk,receiver-addresses,webhook-settings,send-webhook}.test.ts',
  'test/control-plane/**/{closing-replies,conditional-read,error-reply,failures,judge-network,limits,monitoring,serve-console,transitions,transport,unread,waiting-preference,with-revision}.test.ts',
  'test/control-plane/{http/routes/access,store/transact}.test.ts',
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
    // Lab tests mostly wait, for handshakes and deadlines: more of them than cores run well side by side.
    maxWorkers: 6,
    passWithNoTests: false,
    // scripts/test coverage prints it; a failed test does not hide it.
    coverage: { provider: 'v8', include: ['src/**/*.ts'], reporter: ['json-summary'], reportOnFailure: true },
    projects: [
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
      { test: { name: 'programs', include: PROGRAM_TESTS, ...patient } },
      { test: { name: 'sqlite', include: CONTROL_PLANE_TESTS, exclude: POSTGRES_TESTS, ...together } },
      {
        test: {
          name: 'postgres',
          include: CONTROL_PLANE_TESTS,
          exclude: OTHER_THAN_POSTGRES_TESTS,
          globalSetup: 'test/control-plane/postgres-setup.ts',
          ...together,
        },
      },
      { test: { name: 'lab', include: LAB_TESTS, globalSetup: 'test/hostile/report.ts', ...together } },
      { test: { name: 'browser', include: BROWSER_TESTS, globalSetup: 'test/browser/chromium-setup.ts', ...together } },
      { test: { name: 'fuzz', include: FUZZ_TESTS, globalSetup: 'test/fuzz/report.ts', ...patient } },
      { test: { name: 'faults', include: FAULT_TESTS, globalSetup: 'test/faults/report.ts', ...together } },
      { test: { name: 'vm', include: MACHINE_TESTS, sequence: { groupOrder: 1 }, ...patient } },
    ],
  },
});
