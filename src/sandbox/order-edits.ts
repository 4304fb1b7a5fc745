import type { OrderRecord } from './order-record.ts';
import type { Random } from './random.ts';

const ACTIVITIES = ['Item added', 'Item removed', 'Address changed', 'Refund issued'] as const;
const NOTES = [
  'Called the customer',
  'Adult signature required',
  'Split shipment – see invoice',
  'Kühl lagern ❄️',
];

/** What the winery's staff does to an order, at random: an edit, a refund, a note, tags. */
export function editOrder(order: OrderRecord, at: string, random: Random): void {
  switch (random.below(4)) {
    case 0:
      order.notes = order.notes
        ? `${order.notes}; ${random.pick(NOTES)}`.slice(-500)
        : random.pick(NOTES);
      return;
    case 1:
      order.customer_tags = order.customer_tags.includes('reviewed')
        ? order.customer_tags.filter((tag) => tag !== 'reviewed')
        : [...order.customer_tags, 'reviewed'];
      return;
    case 2:
      if (order.payment_status === 'paid') return refund(order, at, random);
  }
  addEdit(order, at, random);
}

function refund(order: OrderRecord, at: string, random: Random): void {
  const amount = Math.round(order.total_price * random.pick([10, 25, 100])) / 100;
  addEdit(order, at, random, amount);
  order.payment_status = amount === order.total_price ? 'refunded' : 'partially_refunded';
}

/** At most eight edits are kept, the newest. */
function addEdit(order: OrderRecord, at: string, random: Random, refunded?: number): void {
  const changes = {
    newItems: random.below(3),
    deletedItems: random.below(2),
    updatedItems: random.below(3),
  };
  order.order_edit = [
    ...(order.order_edit ?? []).slice(-7),
    {
      order_number: order.order_number,
      created_at: at,
      current_operation: {
        newItems: String(changes.newItems),
        deletedItems: String(changes.deletedItems),
        updatedItems: String(changes.updatedItems),
      },
      summary: random.pick([
        {
          note: 'by staff',
          items: [{ sku: order.order_items[0]?.sku ?? '', delta: 1.5, tags: [] }],
        },
        { before: { total: order.total_price }, after: null, 'price/each': 12.5, ok: true },
        {},
        null,
      ]),
      custom_refund_amount: refunded ?? null,
      order_delivery_method: random.pick([null, order.delivery_preference]),
      order_edit_type: refunded === undefined ? random.pick(['Edit', 'Exchange']) : 'Refund',
      status: 'pending',
      activity: refunded === undefined ? random.pick(ACTIVITIES) : 'Refund issued',
      notes: random.pick([null, '', 'asked for by e-mail']),
    },
  ];
}
