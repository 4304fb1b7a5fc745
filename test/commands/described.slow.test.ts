import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli, saidBy } from '../integration/support/cli.ts';

const STORE = join(import.meta.dirname, '../config/store.yaml');
const SHOP = join(import.meta.dirname, '../description/shop.yaml');

/** Output of a command, whose lines of help are joined. */
async function output(args: readonly string[], description: string) {
  const { ended, stdout, stderr } = runCli(args, { API_DESCRIPTION: description });
  const code = await ended;
  return { code, stdout: stdout().replaceAll(/\s+/g, ' '), said: saidBy(stderr()) };
}

describe('commands with a description', () => {
  it('take its lists and name them in the help', async () => {
    const help = await output(['replay', '--help'], STORE);
    expect(help.stdout).toContain(
      'topic sales, price-rules, sale-states, dead-letters, or another topic',
    );
    const verify = await output(['verify', '--help'], STORE);
    expect(verify.stdout).toContain('(choices: "sales", "price-rules")');
    const peek = await output(['peek', 'orders'], STORE);
    expect(peek.code).toBe(2);
    expect(peek.said[0]).toContain('Allowed choices are sales, price-rules.');
  });

  it('name the settings that the description needs', async () => {
    const parameter =
      'API_PARAM_SHOP is not set: shop.yaml:3:14 parameters.0: {shop} needs API_PARAM_SHOP';
    for (const args of [['run'], ['peek', 'orders']]) {
      const { code, said } = await output(args, SHOP);
      expect(code).toBe(2);
      expect(said).toContain(`- ${parameter}`);
    }
    const check = await output(['check'], SHOP);
    expect(check.code).toBe(1);
    expect(check.stdout).toContain(parameter);
    expect((await output(['describe', SHOP], SHOP)).code).toBe(0);
  });

  it('report a wrong description; help has no lists then', async () => {
    const wrong = join(import.meta.dirname, 'described.slow.test.ts');
    const help = await output(['peek', '--help'], wrong);
    expect(help).toMatchObject({ code: 0, said: [] });
    expect(help.stdout).not.toContain('choices');
    const peek = await output(['peek', 'anything'], wrong);
    expect(peek.code).toBe(2);
    expect(peek.said[0]).toMatch(/^cellarstream: described\.slow\.test\.ts:\d+:\d+ /);
  });
});
