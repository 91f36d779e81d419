/**
 * Stands for `node:http2`, which undici and fastify load at their start. The program uses HTTP/1.1.
 * undici itself falls back to this object where Node is built without HTTP/2.
 * Reason: memory.
 * Gain: 1.0 MiB of the private memory of an idle daemon, 19.1 instead of 20.1 MiB. Node with a timer
 * has 8.1, and docs/performance.md promises at most 12 MiB more.
 */
exports.constants = {};
