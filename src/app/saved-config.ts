import { CpnError } from '../core/errors.ts';
import type { TunnelConfig } from '../core/model.ts';
import { parseConfig } from '../core/wg-quick/parse.ts';

/** What each wg-quick file said last, by its interface: that of 10,000 peers is read at every pass, and seldom another. */
const known = new Map<string, { readonly text: string; readonly config: TunnelConfig | null }>();

/** What the text of a wg-quick file says; null where there is none, or one that is not as we write it. */
export function parseSaved(link: string, text: string | null): TunnelConfig | null {
  if (text === null) {
    // Its keys are not kept in memory either.
    known.delete(link);
    return null;
  }
  const last = known.get(link);
  if (last?.text === text) return last.config;
  return noteSaved(link, text, parseOurs(text));
}

/** Takes note of what a text says that need not be read for it. */
export function noteSaved<Config extends TunnelConfig | null>(link: string, text: string, config: Config): Config {
  known.set(link, { text, config });
  return config;
}

function parseOurs(text: string): TunnelConfig | null {
  try {
    return parseConfig(text);
  } catch (error) {
    if (error instanceof CpnError) return null;
    throw error;
  }
}
