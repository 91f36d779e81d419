import type { DeviceDecision } from '../../../contract/device-code.ts';

/**
 * The page of cpn on this machine to which a decision is brought, with the state that cpn put in the
 * link. Null for a device that polls, and without a state.
 */
export function findReturn({ redirect_port: port, code }: DeviceDecision, state: string): string | null {
  if (port === null || !/^[\w-]{16,128}$/.test(state)) return null;
  const answer = new URLSearchParams(code === null ? { error: 'access_denied', state } : { code, state });
  return `http://127.0.0.1:${port}/?${answer}`;
}
