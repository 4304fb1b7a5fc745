import { expect, it, vi } from 'vitest';
import { goldenRun } from './golden-run.ts';
vi.mock('../../src/core/version.ts', () => ({ VERSION: '0.0.0', USER_AGENT: 'x' }));
it('x', async () => {
  const t = performance.now();
  const { kafka, registry, instances, reports } = await goldenRun(Number(process.env.S ?? 1));
  console.log(performance.now() - t, reports.slice(0, 20), instances.map((i) => [i.isOver, String(i.error), (i.error as any)?.cause?.stack]));
  for (const [topic, { partitions }] of kafka.topics) {
    let n = 0, ab = 0, tomb = 0;
    for (let p = 0; p < partitions; p++) for (const b of kafka.log(topic, p)) { n += b.messages.length; if (b.transaction.outcome !== 'commit') ab += b.messages.length; tomb += b.messages.filter((m) => m.value === null).length; }
    console.log(topic, n, 'aborted', ab, 'tombs', tomb);
  }
  console.log(registry.versions.map(({ subject, id }) => `${subject} ${id}`));
  expect(1).toBe(1);
}, 60000);
