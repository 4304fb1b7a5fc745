import { VirtualTimeScheduler } from 'rxjs';
import { expect, it } from 'vitest';
import { PollScans } from '../../../src/pipeline/reads/poll-scans.ts';

function watched(scans: PollScans, time: VirtualTimeScheduler): () => boolean {
  let isDone = false;
  scans.pollsCompleted$.subscribe(() => (isDone = true));
  return () => {
    time.flush();
    return isDone;
  };
}

it('waits for a scan of each chain that began after the subscription', () => {
  const time = new VirtualTimeScheduler();
  const scans = new PollScans(time);
  scans.scanStarted('newest');
  scans.scanStarted('back');
  const isDone = watched(scans, time);
  scans.scanEnded('newest');
  scans.scanStarted('newest');
  scans.scanEnded('newest');
  expect(isDone()).toBe(false);
  scans.scanEnded('back');
  expect(isDone()).toBe(false);
  scans.scanStarted('back');
  scans.scanEnded('back');
  expect(isDone()).toBe(true);
});

it('waits for the first scan where none had begun', () => {
  const time = new VirtualTimeScheduler();
  const scans = new PollScans(time);
  const isDone = watched(scans, time);
  expect(isDone()).toBe(false);
  scans.scanStarted('newest');
  expect(isDone()).toBe(false);
  scans.scanEnded('newest');
  expect(isDone()).toBe(true);
});

it('does not wait for scans that failed before the subscription', () => {
  const time = new VirtualTimeScheduler();
  const scans = new PollScans(time);
  for (let n = 0; n < 3; n += 1) scans.scanStarted('newest');
  scans.scanEnded('newest');
  scans.scanStarted('newest'); // fails
  const isDone = watched(scans, time);
  scans.scanStarted('newest');
  expect(isDone()).toBe(false);
  scans.scanEnded('newest');
  expect(isDone()).toBe(true);
});
