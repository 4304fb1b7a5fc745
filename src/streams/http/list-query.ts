/** The query of a list request; what is left out is not sent. */
export interface ListQuery {
  /** Records to skip. */
  readonly offset?: number;
  /** Records a page; the API allows 1 to 1,000. */
  readonly pageSize?: number;
  /** ISO 8601; the API takes `modifiedToDate` only beside it. */
  readonly modifiedFromDate?: string;
  readonly modifiedToDate?: string;
  readonly orderNumber?: string;
}
