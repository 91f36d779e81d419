import { options, type VNode } from 'preact';
import { printableLines } from '../core/errors/printable.ts';

/** Attributes that a browser shows or reads aloud. Input values are sent again, so they stay. */
const shown = ['title', 'alt', 'placeholder', 'aria-label', 'aria-description', 'aria-roledescription', 'label'];

/** Shows control and invisible characters as U+FFFD: a peer's name could hide or reverse a line. */
export function neutralizeTexts(): void {
  const next = options.vnode;
  options.vnode = (vnode) => {
    neutralize(vnode);
    next?.(vnode);
  };
}

/** Preact represents a text as a node without a type, whose props are the text. */
function neutralize(vnode: VNode): void {
  const { type, props } = vnode as { type: unknown; props: unknown };
  if (typeof props === 'string') Object.assign(vnode, { props: printableLines(props) });
  else if (typeof type === 'string') neutralizeAttributes(props as Record<string, unknown>);
}

function neutralizeAttributes(props: Record<string, unknown>): void {
  for (const name of shown) {
    const value = props[name];
    if (typeof value === 'string') props[name] = printableLines(value);
  }
}
