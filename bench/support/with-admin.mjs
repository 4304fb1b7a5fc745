/**
 * Runs `work` with an admin client of kafkajs that is closed afterwards; kafkajs itself asks again while a new topic is not known yet.
 *
 * @template T
 * @param {import('kafkajs').Kafka} kafka
 * @param {(admin: import('kafkajs').Admin) => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function withAdmin(kafka, work) {
  const admin = kafka.admin();
  await admin.connect();
  try {
    return await work(admin);
  } finally {
    await admin.disconnect();
  }
}
