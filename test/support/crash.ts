import type { Consumer } from 'kafkajs';

/** Tells what ended a consumer for good: what it begins again after by itself is none of a test's business. */
export function onCrash(consumer: Consumer, tell: (error: Error) => void): void {
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    if (!payload.restart) tell(payload.error);
  });
}
