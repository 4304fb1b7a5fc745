import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import chromium from '@sparticuz/chromium';
import { chromium as playwright } from 'playwright-core';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';

/** A page, and what it has done that it should not. */
export interface WatchedPage {
  readonly page: Page;
  /** Console errors and warnings, exceptions, and what a security policy has refused. */
  readonly complaints: readonly string[];
  /** The addresses of all requests. */
  readonly requests: readonly string[];
}

/** A real Chromium without a window. Its own flags: the package's would share one process among all. */
export async function launchBrowser(): Promise<Browser> {
  return playwright.launch({
    executablePath: await chromium.executablePath(),
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    headless: true,
  });
}

/** A new page in a context of its own. */
export async function watchedPage(
  browser: Browser,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext(options);
  const complaints: string[] = [];
  const requests: string[] = [];
  context.on('request', (request) => requests.push(request.url()));
  const page = await context.newPage();
  page.on('pageerror', (error) => complaints.push(error.stack ?? error.message));
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  return { page, complaints, requests };
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe finds wrong with a page as it is, a line each; also what it can't decide but contrast. */
export async function axeFindings(page: Page): Promise<string[]> {
  await page.evaluate(AXE); // by the debugger's protocol, which the page's policy does not concern
  return page.evaluate<string[]>(`axe.run(document, { resultTypes: ['violations'] }).then(
    ({ violations }) => violations.flatMap(({ id, help, nodes }) =>
      nodes.map(({ target, failureSummary }) => [id, help, target.join(' '), failureSummary].join(' | '))))`);
}

/** Whether the page is wider than the window, or a panel's content than the panel. */
export async function isTooWide(page: Page): Promise<boolean> {
  return page.evaluate<boolean>(`document.documentElement.scrollWidth > innerWidth ||
    [...document.querySelectorAll('.panel')].some((each) => each.scrollWidth > each.clientWidth)`);
}
