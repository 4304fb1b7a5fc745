import type { Random } from './random.ts';
import type { JsonObject } from './resources.ts';

export const CLUB_NAMES = [
  'Red Only',
  'Cellar Circle',
  'Rosé All Day',
  'Founder’s Club',
  'Les Amis',
  'Bubbles',
  'Library',
  'Winemaker’s Table',
] as const;

/** A wine club. Its fields are made up; it carries no times. */
export function makeClub(number: number, place: number, random: Random): JsonObject {
  const name = CLUB_NAMES[place % CLUB_NAMES.length]!;
  return {
    id: number,
    name: place < CLUB_NAMES.length ? name : `${name} ${Math.floor(place / CLUB_NAMES.length) + 1}`,
    description: random.pick([null, 'Six bottles of the estate, four times a year.']),
    frequency: random.pick(['monthly', 'quarterly', 'twice_a_year']),
    discount_percent: random.pick([10, 12.5, 15, 20]),
    bottle_count: random.pick([3, 6, 12]),
    is_active: true,
    packages: [{ package_number: 1, package_type: 'Curated', price: random.between(90, 400) }],
  };
}

/** A membership. Its fields are made up. */
export function makeMember(
  basics: { number: number; customer: number; createdAt: string; updatedAt: string; at: string },
  contact: object,
  random: Random,
): JsonObject {
  return {
    id: basics.number,
    customer_id: basics.customer,
    ...contact,
    wine_club_id: random.between(1, CLUB_NAMES.length),
    status: random.pick(['active', 'active', 'active', 'on_hold', 'cancelled']),
    joined_at: basics.at,
    cancelled_at: null,
    shipments: random.between(0, 30),
    preferences: random.pick([null, {}, { varietals: ['Pinot Noir', 'Rosé'], sweetness: 2 }]),
    created_at: basics.createdAt,
    updated_at: basics.updatedAt,
  };
}

/** What happens to a club, at random. */
export function alterClub(club: JsonObject, random: Random): void {
  club.discount_percent = random.pick([10, 12.5, 15, 17.5, 20]);
  club.description = random.pick([null, 'Six bottles, four times a year.', 'À la carte']);
}

/** What happens to a membership, at random. */
export function alterMember(member: JsonObject, at: string, random: Random): void {
  const next = { active: ['on_hold', 'cancelled'], on_hold: ['active', 'cancelled'] } as const;
  const { status } = member;
  member.status =
    status === 'active' || status === 'on_hold' ? random.pick(next[status]) : 'active';
  member.cancelled_at = member.status === 'cancelled' ? at : null;
  member.shipments = (Number(member.shipments) || 0) + 1;
}
