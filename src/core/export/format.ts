import type { TunnelConfig } from '../wg-quick/parse.ts';
import { renderConfig } from '../wg-quick/render.ts';
import { renderKeyfile } from './network-manager.ts';
import { renderUnits } from './networkd.ts';
import { renderUci } from './openwrt.ts';

/** The programs for which cpn can export a tunnel. */
export type Format = 'wg-quick' | 'networkmanager' | 'networkd' | 'openwrt';

/** A file for another program: its suffix, and its text, which may contain the private key. */
export interface ExportedFile {
  readonly suffix: string;
  readonly text: string;
}

/** One file. For systemd-networkd two, the file with the keys first. */
export type ExportedFiles = readonly [ExportedFile, ...ExportedFile[]];

const banner = '# Exported by cpn: a snapshot of the network, which later changes do not reach.';

/** Leaves out the mark of WireGuard's packets: programs set their own, and phones refuse a mark. */
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
