import { writeFileSync } from 'node:fs';

/**
 * Keeps the memory of this process, and of what it starts, out of core dumps: they would hold the keys and tokens that it works
 * with (core(5), coredump_filter). The kernel may still write a file with registers and the list of what was mapped. Systems
 * without such a filter are left as they are.
 */
export function leaveMemoryOutOfCoreDumps(): void {
  try {
    writeFileSync('/proc/self/coredump_filter', '0');
  } catch {
    // No such file: another system, or a /proc that may not be written.
  }
}
