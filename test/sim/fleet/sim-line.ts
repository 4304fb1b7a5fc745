import { CellarstreamError } from '../../../src/core/errors.ts';

/** How one instance reaches Kafka: each step takes time, may be its last, and fails while it is cut off. */
export interface SimLine {
  /** Resolves when the instance may go on; never where it is dead. */
  readonly step: (what: string) => Promise<void>;
  readonly isCutOff: () => boolean;
}

export function unreachable(): CellarstreamError {
  return new CellarstreamError('KAFKA_UNREACHABLE', 'no answer from Kafka');
}

/** A step to Kafka. @throws CellarstreamError `KAFKA_UNREACHABLE` while the instance is cut off. */
export async function reach({ step, isCutOff }: SimLine, what: string): Promise<void> {
  await step(what);
  if (isCutOff()) throw unreachable();
}
