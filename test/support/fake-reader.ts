import type { KafkaMessage, RecordBatchEntry } from 'kafkajs';
import type { ReaderOptions, TopicReader } from '../../src/sinks/fetch/kafka-reader.ts';
import type { LogMessage } from '../../src/sinks/fetch/record-batches.ts';

/** A reader of a topic that is not there: what it has read is what a test gives it. */
export interface FakeReader {
  readonly options: ReaderOptions;
  /** Hands over messages of a partition, the last of which is behind `next`. */
  give(partition: number, messages: readonly KafkaMessage[], next: bigint): void;
  /** As at the ends, where it doesn't follow. */
  end(): void;
  readonly isClosed: boolean;
}

/** Those that were opened, the newest last. */
export const fakeReaders: FakeReader[] = [];

/** In the place of `openReader`. */
export function openFakeReader(options: ReaderOptions): TopicReader {
  let isClosed = false;
  let end!: () => void;
  const done = new Promise<void>((resolve) => (end = resolve));
  fakeReaders.push({
    options,
    end,
    give: (partition, messages, next) =>
      options.onBatch({ partition, messages: messages.map(logged), next }),
    get isClosed() {
      return isClosed;
    },
  });
  return {
    done,
    pause: () => undefined,
    resume: () => undefined,
    close: () => {
      isClosed = true;
      return Promise.resolve();
    },
  };
}

function logged(message: KafkaMessage): LogMessage {
  return { ...(message as RecordBatchEntry), leaderEpoch: 0, isAppendTime: false };
}
