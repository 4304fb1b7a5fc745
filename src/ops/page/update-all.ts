/**
 * Brings views up to date; one that fails keeps no other from it.
 *
 * @param onError Told of each error.
 * @returns Whether none has failed.
 */
export function updateAll<T>(
  views: readonly ((told: T) => void)[],
  told: T,
  onError: (error: unknown) => void,
): boolean {
  let isWhole = true;
  for (const update of views) {
    try {
      update(told);
    } catch (error) {
      isWhole = false;
      onError(error);
    }
  }
  return isWhole;
}
