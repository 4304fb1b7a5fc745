import { inject } from 'vitest';
import type { RecordSchema } from '../../../src/schemas/avro/avro-schema.ts';

/** A topic's schemas as the registry has them, asked by its own HTTP API and nothing of the product. */
export interface Registered {
  /** The oldest first. */
  readonly schemas: readonly RecordSchema[];
  readonly compatibilityLevel: string;
  /** What the registry says of a schema and each of the versions. */
  readonly fits: (schema: RecordSchema) => Promise<boolean[]>;
}

export async function registered(topic: string): Promise<Registered> {
  const subject = `${topic}-value`;
  const versions = (await ask(`/subjects/${subject}/versions`)) as readonly number[];
  const schemas: RecordSchema[] = [];
  for (const version of versions) {
    const { schema } = (await ask(`/subjects/${subject}/versions/${version}`)) as {
      schema: string;
    };
    schemas.push(JSON.parse(schema) as RecordSchema);
  }
  const { compatibilityLevel } = (await ask(`/config/${subject}`)) as {
    compatibilityLevel: string;
  };
  const fits = async (schema: RecordSchema) => {
    const answers: boolean[] = [];
    for (const version of versions) {
      const path = `/compatibility/subjects/${subject}/versions/${version}`;
      const body = { schemaType: 'AVRO', schema: JSON.stringify(schema) };
      const { is_compatible } = (await ask(path, body)) as { is_compatible: boolean };
      answers.push(is_compatible);
    }
    return answers;
  };
  return { schemas, compatibilityLevel, fits };
}

async function ask(path: string, body?: object): Promise<unknown> {
  const answer = await fetch(`${inject('registryUrl')}${path}`, {
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
    headers: { 'content-type': 'application/vnd.schemaregistry.v1+json' },
  });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}
