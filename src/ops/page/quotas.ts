import type { QuotaStatus, Status } from '../status/status-json.ts';
import { byId, html, setAttributes, setText } from './dom.ts';
import { gauge } from './gauge.ts';
import { keyedList } from './keyed-list.ts';

/** A gauge for each endpoint: how many of its requests a minute are used. */
export function quotasView(): (status: Status) => void {
  const list = keyedList<QuotaStatus>({
    parent: byId('quotas'),
    key: ({ name }) => name,
    make: ({ name }) => {
      const bar = gauge(`Quota of ${name}`);
      const figure = html('span', { class: 'figure' });
      const element = html('li', {}, html('span', { class: 'name' }, name), bar.element, figure);
      return {
        element,
        update: ({ used, limit }) => {
          bar.update(used, limit, `${used} of ${limit} requests`);
          setText(figure, `${used} of ${limit}`);
          setAttributes(element, { 'data-full': String(used >= limit) });
        },
      };
    },
  });
  return ({ quotas }) => list(quotas);
}
