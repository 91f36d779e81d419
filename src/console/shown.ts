import { useEffect, useRef } from 'preact/hooks';

/** Whether a component is still on the page. The user may have left it while a request was under way. */
export function useIsShown(): () => boolean {
  const isShown = useRef(true);
  useEffect(
    () => () => {
      isShown.current = false;
    },
    [],
  );
  return () => isShown.current;
}
