import type { MemberMetadata } from './member-metadata.ts';

/**
 * Accounts that are not served because of their API key. Each is mapped to the account with the same API key that is served instead. If the
 * two accounts were served at the same time, together they would exceed the API key's quota.
 */
export type ApiKeyConflicts = ReadonlyMap<string, string>;

/**
 * Detects accounts with the same API key at different instances. They exist for a while after a file was renamed, because instances see the
 * new name at different times. Of the accounts with one API key, only one is served: an account that a leaving instance still serves; if
 * there is none, an account that is assigned to a member; otherwise the first account by name.
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

/**
 * Returns the members' metadata with the accounts in `conflicts` removed from `configured`. Those accounts are not served, because another
 * account has the same API key.
 */
export function withoutApiKeyConflicts(
  members: readonly MemberMetadata[],
  conflicts: ApiKeyConflicts,
): readonly MemberMetadata[] {
  return members.map((member) => ({
    ...member,
    configured: member.configured.filter((account) => !conflicts.has(account)),
  }));
}

/** Returns the error text for an account that has the same API key as another account. */
export function apiKeyConflictText(account: string, other: string): string {
  return `${account}.env: API_KEY is also in ${other}.env at another instance: give all instances the same files in ACCOUNTS_DIR`;
}
