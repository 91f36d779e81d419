/**
 * Every expected failure, by origin. Each has an exit code in cli/exit-code and an HTTP status in
 * control-plane/error-reply.
 *
 * @module
 */
export * from './confirmation.ts';
export * from './cpn-error.ts';
export * from './disk.ts';
export * from './host.ts';
export * from './input.ts';
export * from './printable.ts';
export * from './service.ts';
