import type { Fulfillment, OrderRecord } from './order-record.ts';
import type { Random } from './random.ts';

interface LifeStep {
  readonly name: string;
  readonly due: (order: OrderRecord) => boolean;
  readonly take: (order: OrderRecord, at: string, random: Random) => void;
}

const PARCEL = 6;

/** Steps in an order's life, in order of precedence: the next step is the first that is due. No step is due once the order is complete. */
const LIFE: readonly LifeStep[] = [
  {
    name: 'finish the open edit',
    due: (order) => order.order_edit?.some((edit) => edit.status === 'pending') === true,
    take: (order) => {
      const edit = order.order_edit!.find(({ status }) => status === 'pending')!;
      edit.status = 'completed';
      edit.activity = `${edit.order_edit_type} completed`;
    },
  },
  {
    name: 'select the wines of the package',
    due: (order) => order.club_package_info?.customer_package_status === 'pending_selection',
    take: (order) => {
      order.club_package_info!.customer_package_status = 'selected';
      order.club_package_info!.is_selection_completed = true;
    },
  },
  {
    name: 'check compliance',
    due: (order) => order.club_package_info?.compliance_status === 'pending',
    take: (order, _at, random) => {
      order.club_package_info!.compliance_status = random.chance(0.05) ? 'override' : 'compliant';
    },
  },
  {
    name: 'close the package',
    due: (order) => order.club_package_info?.package_status === 'open',
    take: (order, at) => {
      const club = order.club_package_info!;
      club.package_status = 'closed';
      club.customer_package_status = 'confirmed';
      club.wine_club_order_status = 'processing';
      club.closed_at = at;
      club.closed_date = at;
    },
  },
  { name: 'authorize the payment', due: hasStatus('payment_status', 'pending'), take: authorize },
  { name: 'capture the payment', due: hasStatus('payment_status', 'authorized'), take: capture },
  {
    name: 'hand over at the counter',
    due: (order) =>
      order.delivery_preference === 'Carry Out' && order.fulfillment_status === 'unfulfilled',
    take: complete,
  },
  {
    name: 'ship what is packed',
    due: (order) => order.fulfillment_info.some(({ status }) => status === 'open'),
    take: (order, at) => {
      const parcel = order.fulfillment_info.find(({ status }) => status === 'open')!;
      const pickup = parcel.fulfillment_type === 'Pickup';
      touch(parcel, at, 'success', pickup ? 'picked_up' : 'in_transit');
      const shipped = order.fulfillment_info.filter(({ status }) => status === 'success').length;
      if (shipped >= parcelsOf(order)) complete(order, at);
      else order.fulfillment_status = 'partially_fulfilled';
    },
  },
  {
    name: 'pack the next parcel',
    due: (order) =>
      ['unfulfilled', 'in_progress', 'partially_fulfilled'].includes(order.fulfillment_status) &&
      order.fulfillment_info.length < parcelsOf(order),
    take: pack,
  },
  {
    name: 'bring a parcel to the door',
    due: (order) => order.fulfillment_info.some((f) => f.shipment_status === 'in_transit'),
    take: (order, at) => {
      const parcel = order.fulfillment_info.find((f) => f.shipment_status === 'in_transit')!;
      touch(parcel, at, parcel.status, 'out_for_delivery');
    },
  },
  {
    name: 'deliver a parcel',
    due: (order) => order.fulfillment_info.some((f) => f.shipment_status === 'out_for_delivery'),
    take: (order, at) => {
      const parcel = order.fulfillment_info.find((f) => f.shipment_status === 'out_for_delivery')!;
      touch(parcel, at, parcel.status, 'delivered');
    },
  },
];

/**
 * Advances an order by one step, such as paying, packing, shipping or delivering.
 *
 * @param at Time of the step, as ISO 8601 text.
 * @returns the name of the step, or undefined if the order is complete.
 */
export function advanceOrder(order: OrderRecord, at: string, random: Random): string | undefined {
  const step = LIFE.find(({ due }) => due(order));
  step?.take(order, at, random);
  return step?.name;
}

function hasStatus(field: 'payment_status', value: string) {
  return (order: OrderRecord): boolean => order[field] === value;
}

function authorize(order: OrderRecord, at: string, random: Random): void {
  order.payment_status = 'authorized';
  const total = Math.round(order.total_price * 100);
  const giftCard = random.chance(0.1) ? Math.min(2_500, total) : 0;
  if (giftCard > 0) {
    order.tender_info.push({
      payment_type: 'Gift Card',
      status: 'authorized',
      card_type: null,
      card_brand: null,
      last_four: null,
      amount: giftCard / 100,
      created_at: at,
      ...(random.chance(0.5) ? { card_expiry: null } : {}),
    });
  }
  order.tender_info.push({
    payment_type: order.payment_type ?? 'Credit Card',
    status: 'authorized',
    card_type: random.pick(['credit', 'debit']),
    card_brand: random.pick(['Visa', 'Mastercard', 'American Express', 'Discover']),
    last_four: String(random.between(0, 9_999)).padStart(4, '0'),
    amount: (total - giftCard) / 100,
    created_at: at,
    card_expiry: {
      month: String(random.between(1, 12)).padStart(2, '0'),
      year: String(random.between(2027, 2031)),
    },
  });
}

function capture(order: OrderRecord, at: string): void {
  order.payment_status = 'paid';
  for (const tender of order.tender_info) tender.status = 'captured';
  if (order.club_package_info) order.club_package_info.payment_date = at;
}

function pack(order: OrderRecord, at: string, random: Random): void {
  const place = order.fulfillment_info.length + 1;
  const pickup = order.delivery_preference === 'Pickup';
  const carrier = random.pick(['UPS', 'FedEx', 'GLS']);
  const numbers = Array.from(
    { length: random.pick([1, 1, 1, 2]) },
    () => `1Z${String(random.below(1_000_000_000)).padStart(9, '0')}`,
  );
  const urls = numbers.map((number) => `https://track.example.com/${number}`);
  order.fulfillment_status =
    order.fulfillment_status === 'unfulfilled' ? 'in_progress' : order.fulfillment_status;
  order.fulfillment_info.push({
    fulfillment_id: `F-${order.order_number}-${place}`,
    fulfillment_number: `#${order.order_number}.${place}`,
    status: 'open',
    shipment_status: pickup ? 'ready_for_pickup' : 'label_created',
    service: pickup ? null : random.pick(['Ground', '2nd Day Air', 'Overnight']),
    fulfillment_type: pickup ? 'Pickup' : 'Shipping',
    package_slip: random.pick([
      null,
      `https://slips.example.com/${order.order_number}-${place}.pdf`,
    ]),
    created_at: at,
    updated_at: at,
    history_created_at: random.pick([null, at]),
    shipping_price: place === 1 ? order.shipping_price : 0,
    notify_customer: random.chance(0.7),
    ...(pickup
      ? random.pick([{}, { tracking: null }])
      : {
          tracking: {
            company_name: carrier,
            tracking_number: numbers[0]!,
            tracking_numbers: numbers,
            tracking_url: urls[0]!,
            tracking_urls: urls,
          },
        }),
  });
}

function touch(parcel: Fulfillment, at: string, status: string, shipment: string): void {
  parcel.status = status;
  parcel.shipment_status = shipment;
  parcel.updated_at = at;
}

function complete(order: OrderRecord, _at: string): void {
  order.fulfillment_status = 'fulfilled';
  if (!order.club_package_info) return;
  order.club_package_info.package_status = 'fulfilled';
  order.club_package_info.wine_club_order_status = 'completed';
}

function parcelsOf(order: OrderRecord): number {
  return Math.min(4, Math.ceil(order.item_count / PARCEL));
}

const ACTIVITIES = ['Item added', 'Item removed', 'Address changed', 'Refund issued'] as const;
const NOTES = [
  'Called the customer',
  'Adult signature required',
  'Split shipment – see invoice',
  'Kühl lagern ❄️',
];

/** Edits an order as the winery's staff would: a note, a tag, a refund or a change of items. */
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

function addEdit(order: OrderRecord, at: string, random: Random, refunded?: number): void {
  order.order_edit = [
    ...(order.order_edit ?? []).slice(-7),
    {
      order_number: order.order_number,
      created_at: at,
      // The numbers of items that the edit added, deleted and updated.
      current_operation: {
        newItems: String(random.below(3)),
        deletedItems: String(random.below(2)),
        updatedItems: String(random.below(3)),
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
