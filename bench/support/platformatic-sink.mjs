// @ts-check
// `@platformatic/kafka` behind the interface of the service's sink. It is no dependency: who wants to
// compare the two adds it for that.

const PACKAGE = '@platformatic/kafka';
const RETRY_MS = 5;
const RETRIES = 1_000;

/**
 * The part of it that is used.
 *
 * @typedef {object} Platformatic
 * @property {new (options: object) => PlatformaticProducer} Producer
 * @property {unknown} [compatibilityPartitioner] As the Java client's.
 */

/**
 * @typedef {object} PlatformaticProducer
 * @property {(options: object) => Promise<PlatformaticTransaction>} beginTransaction
 * @property {() => Promise<void>} close
 */

/**
 * @typedef {object} PlatformaticTransaction
 * @property {(options: object) => Promise<{ readonly offsets?: readonly { readonly topic: string, readonly partition: number, readonly offset: bigint }[] }>} send
 * @property {() => Promise<void>} commit
 */

/**
 * @param {readonly string[]} brokers
 * @param {string} transactionalId
 * @returns {Promise<import('../../dist/sinks/sink.js').TransactionalSink>}
 * @throws Error that says how to have it, when it can't be imported.
 */
export async function openPlatformaticSink(brokers, transactionalId) {
  const { Producer, compatibilityPartitioner } = await load();
  const producer = new Producer({
    clientId: 'cellarstream-bench',
    bootstrapBrokers: brokers,
    idempotent: true,
    transactionalId,
    acks: -1,
    compression: 'gzip',
    // A transaction often begins before the broker is done with the one before, and is tried again: its
    // default of a second would be all that is measured.
    retryDelay: RETRY_MS,
    retries: RETRIES,
    ...(compatibilityPartitioner !== undefined && { partitioner: compatibilityPartitioner }),
  });
  return {
    producer: { producerId: -1n, epoch: -1 }, // it keeps that to itself
    commit: async (messages) => {
      const transaction = await producer.beginTransaction({});
      const { offsets = [] } = await transaction.send({
        messages: messages.map(({ topic, key, value }) => ({
          topic,
          value: value ?? undefined,
          ...(key !== null && { key: Buffer.from(key) }),
        })),
        acks: -1,
        compression: 'gzip',
      });
      await transaction.commit();
      /** @type {Map<string, Map<number, bigint>>} */
      const ends = new Map();
      for (const { topic, partition, offset } of offsets) {
        const ofTopic = ends.get(topic) ?? new Map();
        ends.set(topic, ofTopic.set(partition, offset));
      }
      return ends;
    },
    awaitVisible: () => Promise.resolve(), // it knows nothing of what readers see, and is spared that wait
    close: () => producer.close(),
  };
}

/** @returns {Promise<Platformatic>} */
async function load() {
  try {
    return /** @type {Platformatic} */ (await import(PACKAGE));
  } catch (cause) {
    const { code = '' } = /** @type {NodeJS.ErrnoException} */ (cause);
    throw new Error(
      `${PACKAGE} can't be imported on Node ${process.version} (${code}): it takes npm install --no-save ${PACKAGE}, and Node 22.22 or newer`,
      { cause },
    );
  }
}
