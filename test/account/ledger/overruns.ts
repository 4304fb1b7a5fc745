/** Windows with more requests than that, as a server counts: half-open, from any arrival on. */
export function overruns(
  arrivals: readonly { readonly at: number }[],
  name: string,
  most: number,
  windowMs: number,
): string[] {
  const times = arrivals.map(({ at }) => at).sort((a, b) => a - b);
  return times.flatMap((at, k) => {
    const over = times[k + most];
    if (over === undefined || over - at >= windowMs) return [];
    return [`${name}: more than ${most} from ${at} on`];
  });
}
