import { expect, it } from 'vitest';
import { envExample, settingsText } from './settings-text.ts';
import { pathOf } from './texts.ts';

// As snapshots, `npm run docs` can write them.

it('docs/settings.md is what the table of settings makes of it', async () => {
  await expect(settingsText()).toMatchFileSnapshot(pathOf('docs/settings.md'));
});

it('.env.example is what the table of settings makes of it', async () => {
  await expect(envExample()).toMatchFileSnapshot(pathOf('.env.example'));
});
