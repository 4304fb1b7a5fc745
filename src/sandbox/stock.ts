import type { Random } from './random.ts';
import type { JsonObject } from './resources.ts';
import type { Wine } from './wines.ts';

/** An inventory item. The fields are made up, and it carries no times: only a full read finds what changed. */
export function makeStock(sku: string, wine: Wine, random: Random): JsonObject {
  const onHand = random.below(600);
  return {
    sku,
    product_name: wine.product_name,
    variant_name: wine.variant_name,
    location: random.pick(['Tasting Room', 'Warehouse', 'Cellar №2']),
    quantity_on_hand: onHand,
    quantity_reserved: Math.min(onHand, random.below(20)),
    reorder_point: random.pick([null, 12, 24]),
    cost: random.pick([null, Math.round(wine.cents * 0.4) / 100]),
  };
}

/** A sale, a delivery or a reservation, at random. */
export function alterStock(item: JsonObject, random: Random): void {
  const onHand = Number(item.quantity_on_hand) || 0;
  item.quantity_on_hand = random.chance(0.15)
    ? onHand + 120
    : Math.max(0, onHand - random.between(1, 6));
  item.quantity_reserved = Math.min(Number(item.quantity_on_hand), random.below(20));
}
