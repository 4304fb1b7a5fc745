import { holdRequest, loseRequest, pass } from '../support/proxy/exchange.ts';
import type { ClusterProxy } from '../support/proxy/cluster-proxy.ts';
import { commits } from '../support/proxy/kafka-frames.ts';
import type { KafkaRequest } from '../support/proxy/kafka-frames.ts';

/** For a producer to give a batch up, and to begin again. */
const PATIENCE_MS = 150_000;

/**
 * Holds back a Produce of a task on its way to the broker, and loses all that are sent in its place, until the
 * task has given the transaction up: by an abort, or by another InitProducerId. It is delivered when the next
 * transaction has added its partitions: a copy that the network has kept for that long must not become part of it.
 *
 * @throws Error when the task does not come so far in two and a half minutes.
 */
export async function lateProduce(proxy: ClusterProxy, transactionalId: string): Promise<void> {
  const where = ({ id }: KafkaRequest) => id === transactionalId;
  const lifts: (() => void)[] = [];
  const late = AbortSignal.timeout(PATIENCE_MS);
  let stage = 'no Produce came';

  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  const isOver = new Promise<never>((_, reject) => {
    late.addEventListener('abort', () => reject(new Error(`a late Produce: ${stage}`)));
  });
  const given = new Promise<void>((givenUp) => {
    lifts.push(
      proxy.afflict(
        { api: 'EndTxn', where: (request) => where(request) && !commits(request) },
        async (exchange) => {
          await pass(exchange);
          givenUp();
        },
      ),
      proxy.afflict({ api: 'InitProducerId', where }, async (exchange) => {
        await pass(exchange);
        givenUp();
      }),
    );
  });
  try {
    const held = proxy.strike(
      { api: 'Produce', where },
      holdRequest(() => released),
    );
    await Promise.race([held.begun, isOver]);
    stage = 'the transaction was not given up';
    lifts.push(proxy.afflict({ api: 'Produce', where }, loseRequest));
    await Promise.race([given, isOver]);
    stage = 'no other transaction began';
    for (const lift of lifts.splice(0)) lift();
    await Promise.race([proxy.strike({ api: 'AddPartitionsToTxn', where }, pass).done, isOver]);
    stage = 'it was not answered';
    release();
    await Promise.race([held.done, isOver]);
  } finally {
    for (const lift of lifts) lift();
    release();
  }
}
