import { Secret } from '../../src/core/crypto/secret.ts';

/** JSON for {@link readJson}, between two processes of a test: the only text with revealed secrets. */
export function writeJson(value: unknown): string {
  return JSON.stringify(value, revealSecrets);
}

/** What {@link writeJson} wrote. */
export function readJson(text: string): unknown {
  return JSON.parse(text, (_, value) => (typeof value?.secret === 'string' ? new Secret(value.secret) : value));
}

/** A Secret is `[secret]` in JSON by the time a replacer sees it, but for `this`. */
function revealSecrets(this: Record<string, unknown>, key: string, value: unknown): unknown {
  const original = this[key];
  return original instanceof Secret ? { secret: original.reveal() } : value;
}
