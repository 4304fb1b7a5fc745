import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { descriptionFormatText, formatKeys } from './description-format-text.ts';
import { pathOf } from './texts.ts';

it('docs/description-format.md is what the format makes of it', async () => {
  await expect(descriptionFormatText()).toMatchFileSnapshot(pathOf('docs/description-format.md'));
});

it.each([...formatKeys().values()].flat().map((key) => [key.path, key] as const))(
  '%s has a description and a valid example',
  (_, { name, schema, example }) => {
    const value = (parse(`${name}: ${example}`) as Record<string, unknown>)[name];
    expect(schema.safeParse(value).error?.issues).toBeUndefined();
    expect(schema.description).toMatch(/\S/);
  },
);
