import { readFileSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { TESTS_VARIABLE } from './settings.ts';

const list = process.env[TESTS_VARIABLE];

/** The chosen tests as one project, with the limits of vitest.config.ts. */
export default defineConfig({
  test: {
    include: list === undefined ? [] : (JSON.parse(readFileSync(list, 'utf8')) as string[]),
    testTimeout: 180_000,
    hookTimeout: 180_000,
  },
});
