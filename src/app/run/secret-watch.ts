import type { Joined } from '../../store/state.ts';
import type { Survey } from '../survey.ts';
import { isMistold, ownTag, tellSecret } from '../tell-secret.ts';
import type { Tools } from '../tools.ts';
import { Once } from './once.ts';

/** What was told last, and when it is not told again. */
interface Told {
  readonly tag: string | null;
  /** The map that did not show it yet; the next one may. */
  readonly revision: string | null;
  /** The service knows no such thing. */
  readonly isUnknown: boolean;
}

/** Sees to it that the other hosts can know whether this one has their network secret. */
export class SecretWatch {
  readonly #tools: Tools;
  readonly #once: Once;
  #told: Told | null = null;
  #isTelling = false;

  constructor(tools: Tools, link: string) {
    this.#tools = tools;
    const trouble = {
      begins: 'the control plane could not be told the tag of the network secret',
      ends: 'the control plane knows the tag of the network secret',
    };
    this.#once = new Once(tools.log, { interface: link }, trouble);
  }

  /** Takes one more look into account. Tells the control plane beside the passes; what fails is tried again at the next look. */
  follow({ state }: Survey): void {
    if (this.#isTelling) return;
    if (!isMistold(state)) this.#once.notice(null);
    else if (!this.#isTold(state)) void this.#tell(state);
  }

  #isTold({ membership, networkSecret }: Joined): boolean {
    const told = this.#told;
    if (told === null || told.tag !== ownTag({ networkSecret })) return false;
    return told.isUnknown || told.revision === membership.map.revision;
  }

  async #tell(state: Joined): Promise<void> {
    this.#isTelling = true;
    try {
      const outcome = await tellSecret(this.#tools, state);
      const isUnknown = outcome === 'unknown';
      this.#once.notice(isUnknown ? null : outcome);
      if (!isUnknown && outcome !== null) return;
      this.#told = { tag: ownTag(state), revision: state.membership.map.revision, isUnknown };
    } catch (error) {
      this.#once.notice(error);
    } finally {
      this.#isTelling = false;
    }
  }
}
