import { concat, concatMap, defer, EMPTY, of } from 'rxjs';
import type { OperatorFunction } from 'rxjs';

/**
 * Holds the first values back until they are enough, and gives them together; each later one by
 * itself. What has come by the end is given even if it was not enough.
 */
export function gatherFirst<T>(
  isEnough: (gathered: readonly T[]) => boolean,
): OperatorFunction<T, readonly T[]> {
  return (source) =>
    defer(() => {
      let gathered: T[] = [];
      let open = false;
      const give = () => {
        const all = gathered;
        gathered = [];
        return all.length > 0 ? of(all) : EMPTY;
      };
      return concat(
        source.pipe(
          concatMap((value) => {
            gathered.push(value);
            open ||= isEnough(gathered);
            return open ? give() : EMPTY;
          }),
        ),
        defer(give),
      );
    });
}
