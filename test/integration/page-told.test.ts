import { readFileSync } from 'node:fs';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WINE } from '../../src/description/wine/wine.ts';
import { openHttpServer, pageOf } from '../../src/ops/http/http-server.ts';
import type { HttpServer } from '../../src/ops/http/http-server.ts';
import { StatusModel } from '../../src/ops/status/status.ts';
import type { LifeCycle, Status } from '../../src/ops/status/status-json.ts';
import type { Certificate } from '../../src/schemas/events/certificate.ts';
import { axeFindings, isTooWide, launchBrowser, watchedPage } from '../support/browser.ts';
import type { WatchedPage } from '../support/browser.ts';
import { certificateOf } from '../support/certificate.ts';

const SOON = { timeout: 20_000, interval: 50 };
const PAGE = new URL('../../dist/ops/page.html', import.meta.url);

/** What a service is told to be, rather than one that is so. */
describe('the status page, told', () => {
  let told: Status;
  let server: HttpServer;
  let browser: Browser;
  let watched: WatchedPage;
  let page: Page;

  const { status, hooks } = new StatusModel({
    description: WINE,
    pollIntervalMs: 0,
    account: 'cellar',
    prefix: 'wine',
    resources: ['orders'],
    now: () => Date.now(),
    readiness: () => ({ ready: true, reasons: [], causes: [] }),
  });

  beforeAll(async () => {
    told = status();
    server = await openHttpServer({
      host: '127.0.0.1',
      port: 0,
      page: pageOf(readFileSync(PAGE, 'utf8')),
      endpoints: {
        alive: () => true,
        readiness: () => ({ ready: true, reasons: [], causes: [] }),
        status: () => JSON.stringify({ ...told, at: Date.now() }),
        metrics: () => '',
      },
      onError: (error) => {
        throw error;
      },
    });
    browser = await launchBrowser();
    watched = await watchedPage(browser, { viewport: { width: 1200, height: 900 } });
    ({ page } = watched);
    await page.goto(server.url);
  });
  afterAll(async () => {
    await browser.close();
    await server.close();
  });

  const text = (selector: string) => page.locator(selector).innerText();
  const says = (selector: string, said: RegExp) =>
    expect.poll(() => text(selector), SOON).toMatch(said);
  /** The life cycle of one field, through these states in this order. */
  const cycle = (field: string, ...names: string[]): LifeCycle => ({
    resource: 'orders',
    subject: 'order',
    field,
    states: names.map((name) => ({ kind: 'state', name, count: 3 })),
    changes: names.slice(1).map((_, from) => ({ from, to: from + 1, count: 2, medianMs: null })),
    others: 0,
  });
  const tellCycle = (seen: LifeCycle) => {
    const lifeCycles = told.lifeCycles.map((each) =>
      each.subject === seen.subject && each.field === seen.field ? seen : each,
    );
    told = { ...told, lifeCycles };
  };
  const names = async () => ({
    boxes: await page.locator('#diagram .box .name').allTextContents(),
    rows: await page.locator('#life-rows bdi').allInnerTexts(),
  });

  it('shows the first field in which something changes', async () => {
    await says('#headline', /^Ready: /);
    const shown = () => page.locator('#fields input:checked').inputValue();
    expect(await shown()).toBe('orders order payment_status');
    tellCycle(cycle('fulfillment_status', 'open', 'packed', 'sent'));
    await expect.poll(shown, SOON).toBe('orders order fulfillment_status');
    expect((await names()).boxes).toEqual(['open', 'packed', 'sent']);
  });

  it('names states as a service does that began again and met them in another order', async () => {
    tellCycle(cycle('fulfillment_status', 'packed', 'sent', 'back'));
    await expect.poll(async () => (await names()).boxes, SOON).toEqual(['packed', 'sent', 'back']);
    expect((await names()).rows).toEqual(['packed', 'sent', 'sent', 'back']);
  });

  it('says that it is ready, but what may be missing, in colours that can be read', async () => {
    const warning = {
      kind: 'deletions-held',
      resource: 'orders',
      text: '30 of 100 records are gone',
    } as const;
    told = { ...told, warnings: [{ ...warning, at: Date.now() }] };
    await says('#headline', /^Ready, but deletions are held back$/);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      expect(await axeFindings(page), colorScheme).toEqual([]);
    }
  });

  describe('of certificates', () => {
    const TIME = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });
    const fact = (name: string, said: RegExp | string) => {
      const value = page.locator('.facts div', { has: page.locator('dt', { hasText: name }) });
      return expect.poll(() => value.locator('dd').innerText(), SOON).toMatch(said);
    };
    const certify = (more: Partial<Certificate>): string => {
      const certificate = certificateOf({}, { ended_at: Date.now(), records: 10_002, ...more });
      hooks.onCertified!({ resource: 'orders', certificate, level: 'counted' });
      told = { ...told, resources: status().resources };
      return TIME.format(certificate.ended_at);
    };

    it('says that there is none yet', async () => {
      await fact('certified', /^not yet$/);
    });

    it('shows how many records are in the topic of those in the list, whether that is exact, and when', async () => {
      const time = certify({ total_records: 10_002, read: 10_002 });
      await fact('certified', new RegExp(`^10,002 of 10,002, exact, ${time}$`));
      certify({ total_records: 10_002, read: 10_002, ended_at: Date.UTC(2026, 0, 31, 12) });
      await fact('certified', /^10,002 of 10,002, exact, 31 Jan 2026, \d\d:\d\d:\d\d$/);
    });

    it('says why one is not exact, and why a reading since has none', async () => {
      const facts = {
        total_records: 10_004,
        read: 10_002,
        undecided: 2,
        proof: 'complete',
      } as const;
      const time = certify(facts);
      const why = '2 undecided, 10,002 of 10,004 read';
      await fact('certified', `10,002 of 10,004, complete (${why}), ${time}`);
      const moved = certify({ total_records: null, proof: 'complete' });
      await fact('certified', `10,002 of ?, complete (the total moved), ${moved}`);
      hooks.onUncertified!({ resource: 'orders', why: 'partitions' });
      told = { ...told, resources: status().resources };
      await fact(
        'certified',
        `${moved}; not the full scan after it: the topic has other partitions`,
      );
    });

    it('keeps its layout, and gives axe nothing to find', async () => {
      for (const width of [390, 1440]) {
        await page.setViewportSize({ width, height: 900 });
        expect(await isTooWide(page), String(width)).toBe(false);
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme });
          expect(await axeFindings(page), `${width} ${colorScheme}`).toEqual([]);
        }
      }
    });
  });

  it('shows what its other parts can when one of them fails, and says so', async () => {
    const { quotas } = told;
    told = {
      ...told,
      quotas: null as never,
      deadLetters: [{ at: 1, resource: 'orders', reason: 'no-key', offset: 0 }],
    };
    told = {
      ...told,
      resources: told.resources.map((each) => ({ ...each, deadLetters: { 'no-key': 7 } })),
    };
    await says('#letters-note', /^7 records$/);
    await says('#heard', /^live, .*; a part of this page fails: reload it$/);
    told = { ...told, quotas };
    await says('#heard', /^live, [\d:]+$/);
    expect(watched.complaints.length).toBeGreaterThan(0);
  });

  it('is read anew when the service has another version, once', async () => {
    const loads = () => watched.requests.filter((each) => each === `${server.url}/`).length;
    await page.evaluate('document.body.dataset.old = true');
    told = { ...told, version: '1.1.0' };
    await expect.poll(() => page.locator('body[data-old]').count(), SOON).toBe(0);
    await says('#who', /version 1\.1\.0/);
    const heard = await text('#heard');
    await expect.poll(() => text('#heard'), SOON).not.toBe(heard);
    expect(loads()).toBe(2);
  });

  it('says that the service answers, when it has no place for one more page', async () => {
    await page.route('**/status/events', (route) => route.fulfill({ status: 503, body: 'full' }));
    await page.reload();
    await says('#headline', /^Not live: as of \d/);
    expect(await text('#subline')).toMatch(/^The service answers, /);
    expect(await page.locator('body').getAttribute('data-live')).toBe('false');
    await says('#who', /^account cellar, /);
    expect(await axeFindings(page)).toEqual([]);
    await page.unroute('**/status/events');
    await says('#headline', /^Ready/);
  });
});
