import { expect, it } from 'vitest';
import { pathOf, text } from './texts.ts';
import { topicExamples } from './topic-examples.ts';
import { topicsText } from './topics-text.ts';

it('docs/topics.md is what the schemas and the code make of it', async () => {
  const made = topicsText(await topicExamples('wine'));
  // As a snapshot, `npm run docs` can write it.
  await expect(made).toMatchFileSnapshot(pathOf('docs/topics.md'));
});

it('the examples in it tell of the same order', () => {
  const examples = [...text('docs/topics.md').matchAll(/^```json\n(.*?)^```$/gms)].map(
    ([, json]) => JSON.parse(json!) as { key: string | null; value: { op?: string } | null },
  );
  expect(examples.map(({ value }) => (value === null ? null : value.op))).toEqual([
    'r',
    'u',
    'd',
    null,
    undefined,
    undefined,
  ]);
  expect(new Set(examples.slice(0, 5).map(({ key }) => key)).size).toBe(1);
});
