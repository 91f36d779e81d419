/** What a release changes in the files of the project: text in, text out. */

/**
 * https://semver.org, without the build metadata, which would be no newer and no older than the
 * version without it.
 */
const semver =
  /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-z-][\da-z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-z-][\da-z-]*))*))?$/i;

/**
 * Whether a text is a version that can be released: MAJOR.MINOR.PATCH, or that with a pre-release
 * as -rc.1.
 */
export function isVersion(text: string): boolean {
  return semver.test(text);
}

/** Whether a version has precedence over another, by point 11 of semver.org. */
export function isNewer(version: string, other: string): boolean {
  const [ours, theirs] = [split(version), split(other)];
  const [before, beforeOther] = [ours.pop() ?? '', theirs.pop() ?? ''];
  const difference = compare(ours, theirs);
  if (difference !== 0) return difference > 0;
  // What comes before a release is older than the release.
  if (before === '' || beforeOther === '') return before === '' && beforeOther !== '';
  return compare(before.split('.'), beforeOther.split('.')) > 0;
}

/** Major, minor, patch, and the pre-release, or nothing. */
function split(version: string): string[] {
  const [, major, minor, patch, before = ''] = semver.exec(version) ?? [];
  if (major === undefined || minor === undefined || patch === undefined) throw new Error(`"${version}" is no version`);
  return [major, minor, patch, before];
}

function compare(ours: readonly string[], theirs: readonly string[]): number {
  for (const [index, one] of ours.entries()) {
    const other = theirs[index];
    if (other === undefined) return 1;
    if (one === other) continue;
    const numbers = [one, other].map((part) => /^\d+$/.test(part));
    if (numbers[0] && numbers[1]) return Number(one) - Number(other);
    // Numbers are older than words.
    if (numbers[0] !== numbers[1]) return numbers[0] ? -1 : 1;
    return one < other ? -1 : 1;
  }
  return ours.length - theirs.length;
}

/**
 * CHANGELOG.md with what stands under [Unreleased] under a version and its date, YYYY-MM-DD, and
 * nothing unreleased any more.
 *
 * @throws Error where nothing is there to release, or the version has an entry already
 */
export function releaseChanges(changelog: string, version: string, date: string): string {
  if (changelog.includes(`\n## [${version}]`)) throw new Error(`CHANGELOG.md has an entry of ${version} already`);
  const [, head = '', changes, rest = ''] =
    /^([\s\S]*?\n)## \[Unreleased\]\n([\s\S]*?)(\n## \[[\s\S]*)?$/.exec(changelog) ?? [];
  if (changes === undefined) throw new Error('CHANGELOG.md has no section "## [Unreleased]"; write there what changed');
  if (!/^- \S/m.test(changes)) throw new Error('CHANGELOG.md lists no change under [Unreleased]');
  return `${head}## [Unreleased]\n\n## [${version}] - ${date}\n${changes}${rest}`;
}

/** package.json or package-lock.json with another version of the project itself. */
export function setVersion(json: string, version: string): string {
  const facts = JSON.parse(json) as { version: string; packages?: Record<string, { version?: string }> };
  facts.version = version;
  const own = facts.packages?.[''];
  if (own !== undefined) own.version = version;
  return `${JSON.stringify(facts, null, 2)}\n`;
}
