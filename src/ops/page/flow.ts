// The views of the data flow through the service, and of its quotas.

import type { QuotaStatus, Status } from '../status/status-json.ts';
import { byId, gauge, html, keyedList, setAttributes, setText } from './dom.ts';
import { STATIONS } from './stations.ts';

/**
 * Returns a function that updates the picture of the data flow from the API to Kafka. The flow has five stations: token, quota, pages,
 * diff, topics.
 */
export function flowView(): (status: Status) => void {
  const parent = byId('flow');
  const stations = Object.entries(STATIONS).map(([name, at]) => {
    const figure = html('span', { class: 'value' });
    const unit = html('span', { class: 'unit' });
    const shareText = html('p', { class: 'note' });
    const note = html('p', { class: 'note' });
    const trouble = html('p', { class: 'trouble' });
    const bar = gauge(name);
    const element = html(
      'li',
      {},
      html('h3', {}, name),
      html('p', { class: 'figure' }, figure, ' ', unit),
      bar.element,
      shareText,
      note,
      trouble,
      html('span', { class: 'pipe', 'aria-hidden': 'true' }, html('span')),
    );
    parent.append(element);
    return (status: Status) => {
      const now = at(status);
      setText(figure, now.figure);
      setText(unit, now.unit);
      setText(shareText, now.shareText);
      setText(note, now.note);
      setText(trouble, now.trouble);
      setAttributes(element, {
        'data-moves': String(now.moves),
        'data-trouble': String(now.trouble !== ''),
      });
      bar.update(now.share * 100, 100, now.shareText);
    };
  });
  return (status) => stations.forEach((update) => update(status));
}

/** Returns a function that updates the gauges of the quotas: how many of the requests allowed per minute are used. */
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
