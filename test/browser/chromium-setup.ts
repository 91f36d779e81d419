/**
 * Runs around the tests in a browser: one Chromium for all of them, which is Debian's.
 *
 * @module
 */
import { chromium } from 'playwright-core';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the browser of this run listens. */
    chromium: string;
  }
}

/** Debian's Chromium without windows, which takes two thirds of the time of the one with them. */
export const browserOptions = {
  executablePath: '/usr/bin/chromium-headless-shell',
  // Tests run as root, for which Chromium has no sandbox; they show it pages of their own alone.
  args: ['--no-sandbox', '--disable-gpu'],
};

/** Vitest's global setup; returns what runs after the tests. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await chromium.launchServer({
    ...browserOptions,
    host: '127.0.0.1',
    handleSIGINT: false,
  });
  project.provide('chromium', server.wsEndpoint());
  return () => server.close();
}
