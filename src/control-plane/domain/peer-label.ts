import anyAscii from 'any-ascii';
import { toLabel } from '../../core/names/label.ts';

/**
 * The label of a new name, by which hosts resolve the peer: letters of other scripts as a reader of ASCII spells them, so that 北京-web
 * is `beijing-web` and Zoë's iPhone `zoes-iphone`. Empty where nothing is left. A stored label stays as it is until its peer is renamed.
 */
export function labelOf(name: string): string {
  return toLabel(anyAscii(name.normalize('NFKC')).replaceAll("'", ''));
}
