import type { AdminService } from '../../api/admin-service.ts';
import { InvalidValue, WrongUsage } from '../../core/errors/index.ts';
import type { AdminFeature } from '../../core/map/features.ts';
import { isTag, notTag } from '../../core/rules/selector.ts';
import type { Flags } from '../input/flags.ts';
import type { Input } from '../input/input.ts';

export const tagFlags: Flags = {
  tag: { kind: 'list', value: 'TAG', summary: 'replace its tags, by which rules select it' },
  tags: { kind: 'switch', summary: '--no-tags: remove all its tags' },
};

/** The tags of a peer, or undefined without a flag. @throws InvalidValue or WrongUsage */
export function readTags(input: Input): string[] | undefined {
  const tags = readTagList(input);
  const all = input.choice('tags');
  if (all === true) throw new WrongUsage('--tags alone has no meaning; give --tag TAG, or --no-tags');
  if (all === false && tags.length > 0)
    throw new WrongUsage('--tag and --no-tags exclude each other; give one of them');
  return all === false || tags.length > 0 ? tags : undefined;
}

/** The values of `--tag`. @throws InvalidValue */
export function readTagList(input: Input): string[] {
  const tags = [...new Set(input.list('tag'))];
  const wrong = tags.find((tag) => !isTag(tag));
  if (wrong !== undefined) throw new InvalidValue(input.nameOf('tag'), wrong, notTag);
  return tags;
}

/** Refuses if the service does not describe the tags: it would ignore them. */
export async function requireTags(service: AdminService, feature: AdminFeature): Promise<void> {
  if (await service.describes(feature)) return;
  throw new WrongUsage('this control plane does not support tags; leave out --tag');
}
