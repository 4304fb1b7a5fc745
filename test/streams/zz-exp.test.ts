import { expect, it } from 'vitest';
import { MovingList, SORTS, lost, plainScan, scan } from './moving-list.ts';
import type { ListOptions } from './moving-list.ts';
const N = Number(process.env.N ?? 200);
it.each(SORTS)('%s', { timeout: 600_000 }, async (sort) => {
  for (const mode of ['still', 'churn', 'bursts', 'ties'] as const) {
    const t0 = performance.now();
    let ours = 0, plain = 0, late = 0, requests = 0, most = 0, noend = 0, reported = 0, plainLostUnreported = 0;
    const counts: Record<string, number> = {};
    for (let seed = 1; seed <= N; seed++) {
      const pageSize = 20 + (seed % 31);
      const overlap = [10, 5, 3, 1][seed % 4]!;
      const o: ListOptions = { seed, sort, size: 300 + (seed * 7) % 200, ...(mode !== 'still' && mode!=='ties' && { churn: 4 }), ...(mode === 'bursts' && { bursts: 4, burstSize: 3 * pageSize }), ...(mode==='ties' && {ties: [2,5,12,60,400][seed%5]!, shuffled: true, churn: seed%2?2:0}) };
      const list = new MovingList(o);
      let result;
      try { result = await scan(list, { pageSize, overlap }); } catch (e) { noend++; if(noend<3)console.log(String(e)); continue; }
      const l = lost(list, result.read);
      if (l.length) { ours++; if (ours <= 3) console.log(sort, mode, seed, l.length, result.troubles.join()); }
      requests += list.requests; most = Math.max(most, list.requests);
      for (const t of new Set(result.troubles)) counts[t] = (counts[t] ?? 0) + 1;
      list.freeze();
      if (mode !== 'ties') {
      const again = await scan(list, { pageSize, overlap, since: list.began });
      const known = new Map([...result.read, ...again.read]);
      for (const [id, version] of list.truth()) if (known.get(id) !== version) late++;
      }
      const p = new MovingList(o);
      const pl = lost(p, plainScan(p, pageSize)).length>0;
      if (pl) {plain++; if (!result.troubles.some(t=>t==='reordered'||t==='short')) plainLostUnreported++;}
    }
    console.log(sort, mode, { ours, plain, late, noend, requests, most, plainLostUnreported, ...counts, ms: Math.round(performance.now() - t0) });
  }
});
