import { renderConfig } from '../wg-quick/render.ts';
import type { TunnelConfig } from '../wg-quick/tunnel-config.ts';
import { renderKeyfile } from './network-manager.ts';
import { renderUnits } from './networkd.ts';
import { renderUci } from './openwrt.ts';

/** The programs for which a tunnel can be written down. */
export type Format = 'wg-quick' | 'networkmanager' | 'networkd' | 'openwrt';

/** A file that another program reads: what its name ends in, and its text, which may hold the private key. */
export interface ExportedFile {
  readonly suffix: string;
  readonly text: string;
}

/** One file, or of systemd-networkd's two the one with the keys first. */
export type ExportedFiles = readonly [ExportedFile, ...ExportedFile[]];

const banner = '# Exported by cpn: the network as it was then, which follows no change of it.';

/**
 * Writes a tunnel down for another program, as an interface of this name. The mark on WireGuard's own packets is left out: each program
 * makes its own where it needs one, and those on phones refuse a text that names one.
 */
export function renderExport(format: Format, config: TunnelConfig, link: string): ExportedFiles {
  const unmarked = { ...config, fwmark: null };
  switch (format) {
    case 'wg-quick':
      return [{ suffix: '.conf', text: renderConfig(unmarked, { heading: banner }) }];
    case 'networkmanager':
      return [{ suffix: '.nmconnection', text: renderKeyfile(unmarked, link, banner) }];
    case 'networkd': {
      const { netdev, network } = renderUnits(unmarked, link, banner);
      return [
        { suffix: '.netdev', text: netdev },
        { suffix: '.network', text: network },
      ];
    }
    case 'openwrt':
      return [{ suffix: '.uci', text: renderUci(unmarked, link, banner) }];
  }
}
