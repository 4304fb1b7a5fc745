import { concat, concatMap, defer, EMPTY, of } from 'rxjs';
import type { OperatorFunction } from 'rxjs';

/**
 * Creates an operator that collects the first values of a stream into one array. It emits the array once `isEnough` returns true for it or
 * the source completes. Each later value is emitted in a separate array.
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
