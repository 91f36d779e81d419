/**
 * Every expected failure, by origin.
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
