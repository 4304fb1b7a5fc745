import type { Chains } from './published.ts';
import { keyField } from './sim-list.ts';
import type { SimApi } from './sim-api.ts';

/**
 * A field that differs in every answer is published as it came: with the very version of the record that
 * the answer had. So an event never has the value of an older version's answer.
 */
export function checkSignatures(chains: Chains, { signed, isVolatile, traits }: SimApi): string[] {
  if (!isVolatile) return [];
  const violations: string[] = [];
  const field = keyField(traits.resource);
  for (const [key, chain] of chains) {
    for (const event of chain) {
      if (event === 'tombstone' || !event.record) continue;
      const { signatures, record, sequence } = event;
      const sent = signed.get(String(signatures.after)) ?? [];
      const isSent = sent.some(
        ({ json }) => Number(json[field]) === Number(key) && json.version === record.version,
      );
      if (!isSent)
        violations.push(`${key}: ${String(signatures.after)} was not sent with it, at ${sequence}`);
    }
  }
  return violations;
}
