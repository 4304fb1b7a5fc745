import type { MemberMetadata } from './member-metadata.ts';

/**
 * Accounts that are not served, each mapped to the account that has the same API key and is served: serving both would exceed the key's
 * quota.
 */
export type ApiKeyConflicts = ReadonlyMap<string, string>;

/**
 * Detects accounts with the same API key at different instances, as after a file was renamed: instances see the new name at different
 * times. Of such accounts one is served: the one that a leaving instance still runs, else one that is assigned, else the first by name.
 */
export function apiKeyConflictsOf(members: readonly MemberMetadata[]): ApiKeyConflicts {
  const byKey = new Map<string, Set<string>>();
  for (const { apiKeyDigests } of members) {
    for (const [account, key] of apiKeyDigests) {
      byKey.set(key, (byKey.get(key) ?? new Set()).add(account));
    }
  }
  const isLeft = (account: string) =>
    members.some(
      ({ configured, apiKeyDigests }) =>
        apiKeyDigests.has(account) && !configured.includes(account),
    );
  const isHeld = (account: string) => members.some(({ owned }) => owned.has(account));
  return new Map(
    [...byKey.values()].flatMap((accounts) => {
      const byName = [...accounts].sort();
      const served = byName.find(isLeft) ?? byName.find(isHeld) ?? byName[0]!;
      return byName.filter((each) => each !== served).map((each) => [each, served] as const);
    }),
  );
}

/** Returns the members' metadata as if the members had no files of the accounts in `conflicts`. */
export function withoutApiKeyConflicts(
  members: readonly MemberMetadata[],
  conflicts: ApiKeyConflicts,
): readonly MemberMetadata[] {
  return members.map((member) => ({
    ...member,
    configured: member.configured.filter((account) => !conflicts.has(account)),
  }));
}

/** Error text for an account that has the same API key as another one. */
export function apiKeyConflictText(account: string, other: string): string {
  return `${account}.env: API_KEY is also in ${other}.env at another instance: give all instances the same files in ACCOUNTS_DIR`;
}
