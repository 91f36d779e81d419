/** Milliseconds that a tool has, unless told. */
export const usualDeadlineMs = 30_000;
/** Bytes of what a tool prints. */
export const mostOutput = 64 * 1024 * 1024;
/** Bytes of what it says before it fails, or goes into the background. */
export const mostBanner = 64 * 1024;
