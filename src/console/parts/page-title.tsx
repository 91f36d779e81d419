import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { printable } from '../../core/errors/printable.ts';

/** True until the first page was shown. Only later pages take the focus. */
let isFirst = true;

/** Also sets the document's title. Takes the focus on opening: a screen reader reads it. */
export function PageTitle({ children }: { readonly children: string }): JSX.Element {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (!isFirst) heading.current?.focus();
    isFirst = false;
  }, []);
  useEffect(() => {
    document.title = `${printable(children)} – cpn`;
  }, [children]);
  return (
    <h1 ref={heading} tabIndex={-1}>
      {children}
    </h1>
  );
}
