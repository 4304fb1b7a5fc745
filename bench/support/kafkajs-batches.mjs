// @ts-check
// Ready bytes through kafkajs, with nothing of ours around it.
import { CompressionTypes } from 'kafkajs';

/** @typedef {{ readonly key: string, readonly value: Buffer, readonly partition: number }} Ready A message of which nothing is left to be decided. */

/** A producer as the service has it, but for its transactions. */
export class KafkajsBatches {
  #producer;
  #topic;

  /**
   * @param {import('kafkajs').Kafka} kafka
   * @param {string} topic There already.
   */
  static async open(kafka, topic) {
    const producer = kafka.producer({
      allowAutoTopicCreation: false,
      idempotent: true,
      maxInFlightRequests: 1,
    });
    await producer.connect();
    return new KafkajsBatches(producer, topic);
  }

  /** @param {import('kafkajs').Producer} producer @param {string} topic */
  constructor(producer, topic) {
    this.#producer = producer;
    this.#topic = topic;
  }

  /** @param {Ready[]} messages */
  async send(messages) {
    await this.#producer.sendBatch({
      topicMessages: [{ topic: this.#topic, messages }],
      acks: -1,
      compression: CompressionTypes.GZIP,
    });
  }

  close() {
    return this.#producer.disconnect();
  }
}
