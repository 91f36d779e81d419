import anyAscii from 'any-ascii';
import { toLabel } from '../../core/names/label.ts';

/**
 * The DNS label of a new name: 北京-web becomes `beijing-web`, Zoë's iPhone `zoes-iphone`. Empty if
 * no character is left. A stored label stays the same until its peer is renamed.
 */
export function labelOf(name: string): string {
  return toLabel(anyAscii(name.normalize('NFKC')).replaceAll("'", ''));
}
