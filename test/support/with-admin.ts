import type { Admin, Kafka } from 'kafkajs';

/** Answers about a topic that was created a moment ago, and of a partition whose leader has moved. */
const NOT_YET = /UNKNOWN_TOPIC_OR_PARTITION|LEADER_NOT_AVAILABLE|NOT_LEADER_FOR_PARTITION/;
const RETRY_FOR_MS = 10_000;

/** Runs `work` with an admin client of kafkajs, closed afterwards; again with a new one while brokers do not know a topic or its leaders yet. */
export async function withAdmin<T>(
  kafka: Pick<Kafka, 'admin'>,
  work: (admin: Admin) => Promise<T>,
): Promise<T> {
  const until = performance.now() + RETRY_FOR_MS;
  for (;;) {
    const admin = kafka.admin();
    try {
      await admin.connect();
      return await work(admin);
    } catch (error) {
      if (!NOT_YET.test(textOf(error)) || performance.now() > until) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    } finally {
      await admin.disconnect().catch(() => undefined); // what came before it says more
    }
  }
}

/** The types of an error of kafkajs and of its causes. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  return `${'type' in error ? String(error.type) : ''} ${textOf(error.cause)}`;
}
