import { CpnError } from '../core/errors/index.ts';
import { parseConfig, type TunnelConfig } from '../core/wg-quick/parse.ts';
import type { HostStore } from '../store/store.ts';

/** The parsed wg-quick files. A file of 10,000 peers is read at every pass, and rarely changes. */
export class SavedConfigs {
  readonly #known = new Map<string, { readonly text: string; readonly config: TunnelConfig | null }>();

  /** Reads an interface's wg-quick file; null without one, or if it is not in cpn's format. */
  async read(store: Pick<HostStore, 'readConfig'>, link: string): Promise<TunnelConfig | null> {
    return this.parse(link, await store.readConfig(link));
  }

  /** Parses the text of the file, as {@link read}. */
  parse(link: string, text: string | null): TunnelConfig | null {
    if (text === null) {
      this.forget(link);
      return null;
    }
    const last = this.#known.get(link);
    if (last?.text === text) return last.config;
    const config = parseOurs(text);
    this.keep(link, text, config);
    return config;
  }

  /** Stores the config from which a text was rendered, so that it need not be parsed. */
  keep(link: string, text: string, config: TunnelConfig | null): void {
    this.#known.set(link, { text, config });
  }

  /** Drops the config of a removed file, because it contains keys. */
  forget(link: string): void {
    this.#known.delete(link);
  }
}

function parseOurs(text: string): TunnelConfig | null {
  try {
    return parseConfig(text);
  } catch (error) {
    if (error instanceof CpnError) return null;
    throw error;
  }
}
