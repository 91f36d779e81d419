import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { Form } from './form.tsx';

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** A dialog above the page. The browser traps and restores the focus, and closes it with Escape. */
export function Dialog({ title, onClose, children }: DialogProps): JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const opener = document.activeElement;
    element.current?.showModal();
    return () => {
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
      else document.querySelector<HTMLElement>('main h1')?.focus();
    };
  }, []);
  return (
    <dialog ref={element} aria-labelledby={id} onClose={onClose}>
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}

interface ConfirmProps {
  readonly title: string;
  /** The text of the confirming button. */
  readonly action: string;
  readonly onConfirm: () => Promise<unknown>;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** Requires the user to confirm an action that cannot be undone. */
export function Confirm({ title, action, onConfirm, onClose, children }: ConfirmProps): JSX.Element {
  return (
    <Dialog title={title} onClose={onClose}>
      <Form submit={action} isDangerous onSubmit={onConfirm} onCancel={onClose}>
        {children}
      </Form>
    </Dialog>
  );
}
