import { type Signal, signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Network } from '../contract/network.ts';
import type { Enforcement, NetworkRules, RulesPreview, SetRules } from '../contract/rules.ts';
import { ApiError, call, isOutage, isOutOfReach, send } from './client.ts';

const pathOf = (network: number) => `api/networks/${network}/rules`;

/** The rules of a network, and their ETag for a change. */
export interface StoredRules {
  readonly rules: NetworkRules;
  readonly etag: string | null;
}

export interface RulesReading {
  /** Null before the first reply, and if the control plane has no rules. */
  readonly stored: StoredRules | null;
  /** False before the first reply. */
  readonly isRead: boolean;
  readonly problem: string | null;
  refresh(): Promise<void>;
  /** Shows the rules of a reply to a change. */
  show(stored: StoredRules): void;
}

/** Reads the rules again when `version` changes. */
export function useRules(network: number, version: unknown): RulesReading {
  const [stored, setStored] = useState<StoredRules | null>(null);
  const [isRead, setRead] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const latest = useRef(0);
  const show = (next: StoredRules | null) => {
    latest.current += 1;
    setStored(next);
    setRead(true);
    setProblem(null);
  };
  const refresh = async () => {
    latest.current += 1;
    const turn = latest.current;
    try {
      const read = await toStored(await send('GET', pathOf(network)));
      if (turn === latest.current) show(read);
    } catch (error) {
      if (turn !== latest.current) return;
      if (isOutage(error)) isOutOfReach.value = true;
      else if (isAbsent(error)) show(null);
      else {
        setRead(true);
        setProblem(error instanceof Error ? error.message : String(error));
      }
    }
  };
  useEffect(() => {
    void refresh();
    return () => {
      latest.current += 1;
    };
  }, [network, version]);
  return { stored, isRead, problem, refresh, show };
}

const isAbsent = (error: unknown) => error instanceof ApiError && error.status === 404;

async function toStored(response: Response): Promise<StoredRules> {
  return { rules: (await response.json()).data, etag: response.headers.get('etag') };
}

/** Replaces the rules that the user saw. A 412 means that they changed since. @throws ApiError */
export async function applyRules(network: number, body: SetRules, etag: string | null): Promise<StoredRules> {
  return toStored(await send('PUT', pathOf(network), { body, ...expecting(etag) }));
}

/** Reads what a change would allow and end. @throws ApiError */
export function previewRules(network: number, body: SetRules): Promise<RulesPreview> {
  return call('POST', `${pathOf(network)}/preview`, body);
}

/** Keeps rules that the earlier ones would otherwise replace. @throws ApiError */
export async function confirmRules(network: number, etag: string | null): Promise<StoredRules> {
  return toStored(await send('POST', `${pathOf(network)}/confirm`, expecting(etag)));
}

const expecting = (etag: string | null) => (etag === null ? {} : { headers: { 'if-match': etag } });

/** What enforces the rules for connections to each peer, by id. Null in an open network. */
export function useEnforcement(
  { id, rules }: Network,
  version: unknown,
): ReadonlyMap<number, Enforcement['by']> | null {
  const [enforcement, setEnforcement] = useState<ReadonlyMap<number, Enforcement['by']> | null>(null);
  const isClosed = rules !== undefined;
  useEffect(() => {
    let isOver = false;
    if (isClosed) {
      call<NetworkRules>('GET', pathOf(id)).then(
        ({ enforcement }) => {
          if (!isOver) setEnforcement(new Map(enforcement.map(({ peer, by }) => [peer.id, by])));
        },
        // The network shows connection problems.
        () => {},
      );
    }
    return () => {
      isOver = true;
    };
  }, [id, isClosed, version]);
  return isClosed ? enforcement : null;
}

interface Support {
  readonly isFound: Signal<boolean>;
  isReading: boolean;
}

const supported = new Map<number, Support>();

/** True once the control plane has replied with rules of this network. An earlier one has none. */
export function useHasRules(network: number): boolean {
  const support = findSupport(network);
  useEffect(() => {
    if (support.isReading || support.isFound.peek()) return;
    support.isReading = true;
    send('GET', pathOf(network))
      .then(
        () => {
          support.isFound.value = true;
        },
        // The page works without rules, and shows other problems.
        () => {},
      )
      .finally(() => {
        support.isReading = false;
      });
  }, [support]);
  return support.isFound.value;
}

function findSupport(network: number): Support {
  const found = supported.get(network) ?? { isFound: signal(false), isReading: false };
  supported.set(network, found);
  return found;
}
