-- The newest image of each order as a table of Flink SQL. Add columns by the names and types of docs/topics.md, and nested records as ROW<...>.
-- Replace the two addresses. Other lists: another topic and key.

-- Without it an order that is published again (a resync), or whose older events were compacted away, is counted wrongly, silently.
SET 'table.exec.source.cdc-events-duplicate' = 'true';

CREATE TABLE orders (
  order_number BIGINT,
  payment_status STRING,
  fulfillment_status STRING,
  -- With another scale than that of the schema, values are read wrongly, silently.
  total_price DECIMAL(18, 4),
  updated_at TIMESTAMP(3),
  -- The setting above needs it.
  PRIMARY KEY (order_number) NOT ENFORCED
) WITH (
  'connector' = 'kafka',
  'topic' = 'wine.orders',
  'properties.bootstrap.servers' = 'localhost:9092',
  -- Events of aborted transactions would be read, too, silently.
  'properties.isolation.level' = 'read_committed',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-avro-confluent',
  'debezium-avro-confluent.url' = 'http://localhost:8081/apis/ccompat/v7'
);
