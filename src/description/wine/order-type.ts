// Generated from order.avsc by scripts/generate-order-type.mjs (`npm run docs`): change the schema instead.

/**
 * An order as the API showed it. Fields, nulls and unmapped together rebuild its JSON.
 *
 * A field is null if the API sent null (`nulls` lists these fields), left the field out, or sent a value that the field can't
 * hold exactly (`unmapped` has such values). An array element that is null, or that can't be held, is an empty element.
 */
export interface Order {
  /** The number of the order, and its key. */
  readonly order_number: number | null;
  /** When the order was created. In ms since 1970. */
  readonly created_at: number | null;
  /** When the order was last modified. In ms since 1970. */
  readonly updated_at: number | null;
  /** The date of the order. In ms since 1970. */
  readonly order_date: number | null;
  /** The customer's first name. */
  readonly first_name: string | null;
  /** The customer's last name. */
  readonly last_name: string | null;
  /** The customer's date of birth. As `YYYY-MM-DD`. */
  readonly date_of_birth: string | null;
  /** The customer's phone number. */
  readonly phone: string | null;
  /** The customer's e-mail address. */
  readonly email: string | null;
  /** Sum of the items before discounts, shipping and taxes. Up to 4 decimal places. */
  readonly subtotal_price: number | null;
  /** Sum of all discounts. Up to 4 decimal places. */
  readonly total_discounts: number | null;
  /** Price of shipping. Up to 4 decimal places. */
  readonly shipping_price: number | null;
  /** Sales tax. Up to 4 decimal places. */
  readonly sales_tax: number | null;
  /** California Redemption Value: the deposit on containers. Up to 4 decimal places. */
  readonly crv: number | null;
  /** Sum of all taxes. Up to 4 decimal places. */
  readonly total_tax: number | null;
  /** What the order costs in all. Up to 4 decimal places. */
  readonly total_price: number | null;
  /** Tip. Up to 4 decimal places. */
  readonly tip: number | null;
  /** How the customer wants to receive the order. */
  readonly delivery_preference: string | null;
  /** Type of the order; its values are not documented. */
  readonly order_type: string | null;
  /** Subtype of the order; its values are not documented. */
  readonly order_subtype: string | null;
  /** How far payment has come. A status; its values are not documented. */
  readonly payment_status: string | null;
  /** How far fulfilment has come. A status; its values are not documented. */
  readonly fulfillment_status: string | null;
  /** Number of items. */
  readonly item_count: number | null;
  /** The line items. */
  readonly order_items: readonly OrderItem[] | null;
  /** Discounts by kind. */
  readonly order_discounts: OrderDiscounts | null;
  /** First name of the recipient. */
  readonly shipping_first_name: string | null;
  /** Last name of the recipient. */
  readonly shipping_last_name: string | null;
  /** Birth date of the recipient. As `YYYY-MM-DD`. */
  readonly shipping_birth_date: string | null;
  /** Phone number of the recipient. */
  readonly shipping_phone: string | null;
  /** Shipping address, first line. */
  readonly shipping_address_line1: string | null;
  /** Shipping address, second line. */
  readonly shipping_address_line2: string | null;
  /** Shipping address: city. */
  readonly shipping_address_city: string | null;
  /** Shipping address: state. */
  readonly shipping_address_state: string | null;
  /** Shipping address: ZIP code. */
  readonly shipping_address_zip_code: string | null;
  /** First name of the payer. */
  readonly billing_first_name: string | null;
  /** Last name of the payer. */
  readonly billing_last_name: string | null;
  /** Birth date of the payer. As `YYYY-MM-DD`. */
  readonly billing_birth_date: string | null;
  /** Phone number of the payer. */
  readonly billing_phone: string | null;
  /** Billing address, first line. */
  readonly billing_address_line1: string | null;
  /** Billing address, second line. */
  readonly billing_address_line2: string | null;
  /** Billing address: city. */
  readonly billing_address_city: string | null;
  /** Billing address: state. */
  readonly billing_address_state: string | null;
  /** Billing address: ZIP code. */
  readonly billing_address_zip_code: string | null;
  /** Type of the customer. */
  readonly customer_type: string | null;
  /** The customer's tags. */
  readonly customer_tags: readonly string[] | null;
  /** Class of the order; not documented further. */
  readonly class: string | null;
  /** Notes on the order. */
  readonly notes: string | null;
  /** How the order was paid. */
  readonly payment_type: string | null;
  /** Edits of the order, if any. */
  readonly order_edit: readonly OrderEdit[] | null;
  /** The wine-club package, if the order is one. */
  readonly club_package_info: ClubPackage | null;
  /** The fulfilments of the order. */
  readonly fulfillment_info: readonly Fulfillment[] | null;
  /** The payment tenders. */
  readonly tender_info: readonly Tender[] | null;
  /** Where the API sent null, by JSON Pointer, sorted. Any other null field was absent. */
  readonly nulls: readonly string[];
  /** What the fields can't hold exactly, as JSON text, by JSON Pointer, sorted. It replaces what they say. */
  readonly unmapped: Readonly<Record<string, string>>;
}

/** A line item of an order. */
export interface OrderItem {
  /** Name of the product. */
  readonly product_name: string | null;
  /** Name of the variant of the product. */
  readonly variant_name: string | null;
  /** Stock keeping unit. */
  readonly sku: string | null;
  /** Type of the product. */
  readonly product_type: string | null;
  /** How many. */
  readonly quantity: number | null;
  /** Price. Up to 4 decimal places. */
  readonly price: number | null;
}

/** The discounts of an order, by kind. */
export interface OrderDiscounts {
  /** Amount of the automatic wine-club discount; null when there is none. Up to 4 decimal places. */
  readonly auto_discount: number | null;
  /** Amount of the promotional-code discount; null when there is none. Up to 4 decimal places. */
  readonly promocode_discount: number | null;
  /** Amount of the point-of-sale discount; null when there is none. Up to 4 decimal places. */
  readonly pos_discount: number | null;
  /** Amount of the custom discount; null when there is none. Up to 4 decimal places. */
  readonly custom_discount: number | null;
}

/** An edit of an order. */
export interface OrderEdit {
  /** The number of the order that was edited. */
  readonly order_number: number | null;
  /** When the edit was made; the edit is known by it. In ms since 1970. */
  readonly created_at: number | null;
  /** Counts of what the edit did. */
  readonly current_operation: OrderEditOperation | null;
  /** Summary of the edit: JSON text, with the keys of its objects sorted. */
  readonly summary: string | null;
  /** Amount of a custom refund. Up to 4 decimal places. */
  readonly custom_refund_amount: number | null;
  /** Delivery method of the order. */
  readonly order_delivery_method: string | null;
  /** Type of the edit. */
  readonly order_edit_type: string | null;
  /** How far the edit has come. A status; its values are not documented. */
  readonly status: string | null;
  /** Activity; not documented further. */
  readonly activity: string | null;
  /** Notes on the edit. */
  readonly notes: string | null;
}

/** What an edit did, in counts. */
export interface OrderEditOperation {
  /** Count of items added, as text. */
  readonly newItems: string | null;
  /** Count of items removed, as text. */
  readonly deletedItems: string | null;
  /** Count of items modified, as text. */
  readonly updatedItems: string | null;
}

/** A wine-club package. */
export interface ClubPackage {
  /** Name of the wine club. */
  readonly wine_club_name: string | null;
  /** Type of the subscription. */
  readonly subscription_package_type: string | null;
  /** Type of the package. */
  readonly package_type: string | null;
  /** Status of the package. Its values are not documented. */
  readonly package_status: string | null;
  /** Status of the customer's package. Its values are not documented. */
  readonly customer_package_status: string | null;
  /** Message on the package. */
  readonly package_message: string | null;
  /** Status of the wine-club order. Its values are not documented. */
  readonly wine_club_order_status: string | null;
  /** Status of the compliance check. Its values are not documented. */
  readonly compliance_status: string | null;
  /** Message of the wine club. */
  readonly wine_club_message: string | null;
  /** Number of the package. */
  readonly package_number: number | null;
  /** When the package is or was paid. In ms since 1970. */
  readonly payment_date: number | null;
  /** When the package opens. In ms since 1970. */
  readonly open_at: number | null;
  /** When the package closes. In ms since 1970. */
  readonly closed_at: number | null;
  /** When the package was opened. In ms since 1970. */
  readonly opened_date: number | null;
  /** When the package was closed. In ms since 1970. */
  readonly closed_date: number | null;
  /** Whether the customer has made the selection. */
  readonly is_selection_completed: boolean | null;
}

/** A fulfilment of an order. */
export interface Fulfillment {
  /** Identity of the fulfilment. */
  readonly fulfillment_id: string | null;
  /** Number of the fulfilment. */
  readonly fulfillment_number: string | null;
  /** How far the fulfilment has come. A status; its values are not documented. */
  readonly status: string | null;
  /** How far the shipment has come. A status; its values are not documented. */
  readonly shipment_status: string | null;
  /** Service that fulfils. */
  readonly service: string | null;
  /** Type of the fulfilment. */
  readonly fulfillment_type: string | null;
  /** Package slip. */
  readonly package_slip: string | null;
  /** When the fulfilment was created. In ms since 1970. */
  readonly created_at: number | null;
  /** When the fulfilment was last modified. In ms since 1970. */
  readonly updated_at: number | null;
  /** When its history entry was created. In ms since 1970. */
  readonly history_created_at: number | null;
  /** Price of shipping. Up to 4 decimal places. */
  readonly shipping_price: number | null;
  /** Whether the customer is notified. */
  readonly notify_customer: boolean | null;
  /** Where the parcels are. */
  readonly tracking: Tracking | null;
}

/** Tracking of a fulfilment. */
export interface Tracking {
  /** Name of the carrier. */
  readonly company_name: string | null;
  /** Tracking number. */
  readonly tracking_number: string | null;
  /** All tracking numbers. */
  readonly tracking_numbers: readonly string[] | null;
  /** Tracking page. */
  readonly tracking_url: string | null;
  /** All tracking pages. */
  readonly tracking_urls: readonly string[] | null;
}

/** A payment tender. */
export interface Tender {
  /** Type of the payment. */
  readonly payment_type: string | null;
  /** How far the payment has come. */
  readonly status: string | null;
  /** Type of the card. */
  readonly card_type: string | null;
  /** Brand of the card. */
  readonly card_brand: string | null;
  /** Last four digits of the card. */
  readonly last_four: string | null;
  /** Amount. Up to 4 decimal places. */
  readonly amount: number | null;
  /** When the tender was made. In ms since 1970. */
  readonly created_at: number | null;
  /** When the card expires. */
  readonly card_expiry: CardExpiry | null;
}

/** Expiry of a card. */
export interface CardExpiry {
  /** Month. */
  readonly month: string | null;
  /** Year. */
  readonly year: string | null;
}
