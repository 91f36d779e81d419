import { useEffect, useRef } from 'preact/hooks';

/** Returns a function that is true while the component is mounted, to be called after a request. */
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
