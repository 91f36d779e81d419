/**
 * The catalogue of every failure that this program foresees, by where it comes from. Each has its exit code in cli/exit-code and its
 * HTTP status in control-plane/error-reply.
 *
 * @module
 */
export * from './errors/confirmation.ts';
export * from './errors/cpn-error.ts';
export * from './errors/disk.ts';
export * from './errors/host.ts';
export * from './errors/input.ts';
export * from './errors/service.ts';
