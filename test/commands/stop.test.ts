import { expect, it, onTestFinished, vi } from 'vitest';
import { stopSignals } from '../../src/commands/stop.ts';

it('stops at the first signal, takes what comes with it for the same, and ends at once at another one', () => {
  const before = process.listeners('SIGINT');
  const exit = vi.spyOn(process, 'exit').mockImplementation(() => undefined as never);
  const clock = vi.spyOn(performance, 'now').mockReturnValue(10_000);
  onTestFinished(() => {
    vi.restoreAllMocks();
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
      for (const each of process.listeners(signal))
        if (!before.includes(each)) process.off(signal, each);
  });
  const stops: string[] = [];
  stopSignals().subscribe((signal) => stops.push(signal));
  process.emit('SIGINT');
  clock.mockReturnValue(10_400);
  process.emit('SIGINT'); // npm's, of the same Ctrl-C
  expect(stops).toEqual(['SIGINT']);
  expect(exit).not.toHaveBeenCalled();
  clock.mockReturnValue(10_600);
  process.emit('SIGTERM');
  expect(exit).toHaveBeenCalledExactlyOnceWith(1);
});
