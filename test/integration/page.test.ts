import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startSandbox } from '../../src/sandbox/index.ts';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { axeFindings, isTooWide, launchBrowser, watchedPage } from '../support/browser.ts';
import type { WatchedPage } from '../support/browser.ts';
import { runCli } from './support/cli.ts';
import type { Cli } from './support/cli.ts';
import { connections } from './support/service.ts';

const SOON = { timeout: 20_000, interval: 50 };
const WIDE = { width: 1440, height: 1000 };
const LAPTOP = { width: 1200, height: 900 };
const PHONE = { width: 390, height: 844 };
const SCHEMES = ['light', 'dark'] as const;
/** Statuses that are not what anybody expects. */
const HOSTILE = [
  '<img src=x onerror="document.title = 1">',
  `long${'g'.repeat(300)}`,
  'الطلب في الطريق ⁦‮',
  '',
];

/** One service and one browser for all: what one test does, the page shows in the next. */
describe('the status page', () => {
  let sandbox: Sandbox;
  let state: string;
  let service: Cli;
  let url: string;
  let browser: Browser;
  let watched: WatchedPage;
  let page: Page;

  const start = async (port: string) => {
    service = runCli(['run'], {
      ...connections(sandbox, 'page', state),
      RESOURCES: 'orders,inventory',
      HTTP_PORT: port,
    });
    const listening = await service.logged(({ event }) => event === 'listening');
    return listening.url as string;
  };
  beforeAll(async () => {
    sandbox = await startSandbox({
      records: { orders: 1_500, inventory: 50 },
      changesPerSecond: 20,
    });
    state = mkdtempSync(join(tmpdir(), 'cellarstream-page-'));
    [browser, url] = await Promise.all([launchBrowser(), start('0')]);
    watched = await watchedPage(browser, { viewport: WIDE });
    ({ page } = watched);
    await page.goto(url);
  });
  afterAll(async () => {
    await service.end('SIGKILL');
    await Promise.all([browser.close(), sandbox.close()]);
    rmSync(state, { recursive: true, force: true });
  });

  const text = (selector: string) => page.locator(selector).innerText();
  const headline = (said: RegExp) => expect.poll(() => text('#headline'), SOON).toMatch(said);
  const isLive = () => page.locator('body').getAttribute('data-live');
  /** Resolves when a text is another than it was. */
  const moves = async (selector: string) => {
    const before = await text(selector);
    await expect.poll(() => text(selector), SOON).not.toBe(before);
  };

  it('says first and in words that the service is ready, and its figures move', async () => {
    await headline(/^Ready: /);
    expect(await page.locator('main > *').first().getAttribute('id')).toBe('verdict');
    expect(await page.title()).toContain('✓');
    await Promise.all(['#heard', '#who', '#resources li:first-child .facts', '#flow'].map(moves));
    await expect.poll(() => page.locator('#changes li').count(), SOON).toBeGreaterThan(5);
    await expect
      .poll(() => text('#resources li:first-child .lag'), SOON)
      .toMatch(/^\d.* s median lag/);
    expect(await page.locator('#quotas [role=meter]').count()).toBe(3);
    const state = () => text('#resources li:first-child .state');
    await expect.poll(state, SOON).toBe('following');
  });

  it('shows any of the nine life cycles, by keyboard alone', async () => {
    const diagram = page.locator('#diagram svg');
    await page.locator('#fields input:checked').focus();
    await page.keyboard.press('ArrowRight');
    const seen = new Set<string>();
    for (let field = 0; field < 9; field++) {
      seen.add(await page.locator('#fields input:checked').inputValue());
      await page.keyboard.press('ArrowRight');
    }
    expect(seen.size).toBe(9);
    await page.locator('#fields input[value="orders order payment_status"]').focus();
    await page.keyboard.press('Space');
    await expect
      .poll(() => diagram.getAttribute('aria-label'), SOON)
      .toMatch(/^State diagram of payment_status: \d+ states/);
    const arrows = await diagram.locator('.arrow').count();
    expect(arrows).toBeGreaterThan(0);
    expect(await page.locator('#life-rows tr').count()).toBeGreaterThanOrEqual(arrows);
  });

  it('shows hostile statuses as the text that they are, and keeps its layout', async () => {
    for (const [nth, status] of HOSTILE.entries()) {
      sandbox.setStatus(100_001 + nth, 'payment_status', status);
    }
    const names = () => page.locator('#life-rows bdi').allInnerTexts();
    for (const status of [HOSTILE[0]!, `${HOSTILE[1]!.slice(0, 199)}…`, HOSTILE[2]!, '(empty)']) {
      await expect.poll(names, SOON).toContain(status);
    }
    expect(await page.locator('#diagram .box title').allTextContents()).toContain(HOSTILE[0]);
    expect(await page.locator('img').count()).toBe(0);
    for (const viewport of [WIDE, LAPTOP, PHONE]) {
      await page.setViewportSize(viewport);
      expect(await isTooWide(page), `${viewport.width}`).toBe(false);
    }
  });

  it('gives axe nothing to find, wide and on a phone, light and dark', async () => {
    for (const viewport of [PHONE, WIDE]) {
      await page.setViewportSize(viewport);
      for (const colorScheme of SCHEMES) {
        await page.emulateMedia({ colorScheme });
        expect(await axeFindings(page), `${viewport.width} ${colorScheme}`).toEqual([]);
      }
    }
  });

  it('stands still for those who want it to', async () => {
    const moving = () => page.evaluate<number>('document.getAnimations().length');
    await expect.poll(moving, SOON).toBeGreaterThan(0);
    await page.emulateMedia({ reducedMotion: 'reduce' });
    expect(await moving()).toBe(0);
  });

  it('says soon that the service says nothing, and goes on when it does again', async () => {
    service.process.kill('SIGSTOP'); // the connection stays open
    await expect.poll(isLive, SOON).toBe('false');
    expect(await text('#headline')).toMatch(/^No word from the service since \d\d:\d\d:\d\d$/);
    expect(await text('#subline')).toMatch(/The figures below are as of then/);
    expect(await text('#heard')).toMatch(/old$/);
    expect(await axeFindings(page)).toEqual([]);
    service.process.kill('SIGCONT');
    await expect.poll(isLive, SOON).toBe('true');
  });

  it('comes back by itself after the service was killed, past an answer that ends all tries of a browser', async () => {
    const { port } = new URL(url);
    await service.end('SIGKILL');
    await expect.poll(isLive, SOON).toBe('false');
    let refused = 0;
    await page.route('**/status/events', async (route) => {
      refused += 1;
      await route.fulfill({ status: 502, body: 'a proxy, whose server is away' });
    });
    await expect.poll(() => refused, SOON).toBeGreaterThan(0);
    await page.unroute('**/status/events');
    await start(port);
    await headline(/^(Ready|Starting)/);
    await headline(/^Ready/);
    expect(await isLive()).toBe('true');
  });

  it('says in words, and first, that the API is away', async () => {
    await sandbox.down();
    await headline(/^Not ready: waiting for the API$/);
    expect(await text('#wrong li:first-child')).toMatch(
      /: waiting for the API since .*: no answer/,
    );
    expect(await text('#flow li:nth-child(3) .trouble')).toBe('waiting for the API');
    expect(await text('#said')).toMatch(/waiting for the API/);
    expect(await page.title()).toContain('!');
    expect(await axeFindings(page)).toEqual([]);
    await sandbox.up();
    await headline(/^Ready/);
  });

  it('asked nobody but its own server, and complained of nothing but lost connections', () => {
    const { requests, complaints } = watched;
    expect(requests.filter((each) => !each.startsWith(url))).toEqual([]);
    expect(
      complaints.filter(
        (each) =>
          !/ERR_CONNECTION_(REFUSED|RESET)|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE_CHUNKED_ENCODING|502/.test(
            each,
          ),
      ),
    ).toEqual([]);
  });
});
