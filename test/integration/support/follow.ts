import { inject } from 'vitest';
import { atEnd } from './running-test.ts';
import { followTopic } from './topic-reader.ts';
import type { Read } from './topic-reader.ts';

/**
 * What is committed to a topic, from its beginning: a list that grows until the end of the test. The
 * topic must be there.
 */
export function follow(topic: string): readonly Read[] {
  const read: Read[] = [];
  const stop = new AbortController();
  const onRead = (message: Read) => void read.push(message);
  const reading = followTopic(inject('brokers'), inject('registryUrl'), topic, onRead, stop.signal);
  atEnd(() => {
    stop.abort();
    return reading;
  });
  return read;
}
