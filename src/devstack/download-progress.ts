const UNITS: Readonly<Record<string, number>> = { B: 1e-6, kB: 1e-3, MB: 1, GB: 1e3 };

/**
 * What Maven's log says of a download, on one line: how many files have come, how large they are
 * together, and which is on its way.
 *
 * @param log The output of `mvn --batch-mode`, as far as it is written.
 * @param tookMs Since Maven was started.
 */
export function downloadProgress(log: string, tookMs: number): string {
  const done = [...log.matchAll(/Downloaded from \S+ (\S+) \(([\d.]+) ([kMG]?B)/g)];
  const finished = new Set(done.map(([, url]) => url));
  const megabytes = done.reduce((sum, [, , size, unit]) => sum + Number(size) * UNITS[unit!]!, 0);
  const current = [...log.matchAll(/Downloading from \S+ (\S+)/g)]
    .map(([, url]) => url!)
    .findLast((url) => !finished.has(url));
  const now = current === undefined ? '' : `, now ${current.slice(current.lastIndexOf('/') + 1)}`;
  const sum = `${done.length} files, ${megabytes.toFixed(1)} MB, `;
  // Nothing of what Maven has in its own repository is downloaded.
  const downloads = done.length > 0 ? sum : '';
  return (
    `fetching Kafka and the schema registry: ${downloads}` + `${Math.round(tookMs / 1000)} s${now}`
  );
}
