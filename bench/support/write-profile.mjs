// @ts-check
// Loaded into a process before its program: SIGUSR2 begins a profile, and the next one ends it. See
// `profile-on-signal.mjs`, whose path is in the address of this module.
import { writeFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { writeHeapSnapshot } from 'node:v8';
import { isMainThread } from 'node:worker_threads';

if (isMainThread) {
  const path = new URL(import.meta.url).searchParams.get('path') ?? 'profile';
  const session = new Session();
  session.connect();
  process.once('SIGUSR2', () => {
    process.once('SIGUSR2', () => void end());
    void begin();
  });
  const begin = async () => {
    await session.post('Profiler.enable');
    await session.post('Profiler.start');
  };
  const end = async () => {
    const { profile } = await session.post('Profiler.stop');
    writeFileSync(`${path}.cpuprofile`, JSON.stringify(profile));
    writeHeapSnapshot(`${path}.heapsnapshot`);
    writeFileSync(`${path}.done`, '');
  };
}
