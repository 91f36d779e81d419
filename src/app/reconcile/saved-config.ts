import { CpnError } from '../../core/errors/index.ts';
import { parseConfig } from '../../core/wg-quick/parse.ts';
import type { TunnelConfig } from '../../core/wg-quick/tunnel-config.ts';

/**
 * The last parsed wg-quick file of each interface. A file of 10,000 peers is read at every pass,
 * and rarely changes.
 */
const known = new Map<string, { readonly text: string; readonly config: TunnelConfig | null }>();

/** Parses the text of a wg-quick file; null without a file, or if it is not in cpn's format. */
export function parseSaved(link: string, text: string | null): TunnelConfig | null {
  if (text === null) {
    // Keys of a removed file are not kept in memory.
    known.delete(link);
    return null;
  }
  const last = known.get(link);
  if (last?.text === text) return last.config;
  return rememberSaved(link, text, parseOurs(text));
}

/** Stores the config from which a text was rendered, so that it need not be parsed. */
export function rememberSaved<Config extends TunnelConfig | null>(link: string, text: string, config: Config): Config {
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
