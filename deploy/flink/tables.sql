-- The newest image of each record of each list as a table of Flink SQL, and the status changes of orders as a stream.
-- The columns are the fields of the API's description whose values are numbers, texts, dates or lists of texts. Add others by docs/topics.md,
-- nested records as ROW<...>. Replace the two addresses and the prefix `wine`, and leave out the lists that the service does not read.

-- Without it a record that is published again (a resync), or whose older events were compacted away, is counted wrongly, silently.
-- It needs the primary keys.
SET 'table.exec.source.cdc-events-duplicate' = 'true';

-- Amounts of orders are DECIMAL(18, 4): with another scale than that of the schema, values are read wrongly, silently.
-- isolation.level: without it, events of aborted transactions are read, silently.

CREATE TABLE orders (
  order_number BIGINT,
  created_at TIMESTAMP(3),
  updated_at TIMESTAMP(3),
  order_date TIMESTAMP(3),
  first_name STRING,
  last_name STRING,
  date_of_birth DATE,
  phone STRING,
  email STRING,
  subtotal_price DECIMAL(18, 4),
  total_discounts DECIMAL(18, 4),
  shipping_price DECIMAL(18, 4),
  sales_tax DECIMAL(18, 4),
  crv DECIMAL(18, 4),
  total_tax DECIMAL(18, 4),
  total_price DECIMAL(18, 4),
  tip DECIMAL(18, 4),
  delivery_preference STRING,
  order_type STRING,
  order_subtype STRING,
  payment_status STRING,
  fulfillment_status STRING,
  item_count BIGINT,
  shipping_first_name STRING,
  shipping_last_name STRING,
  shipping_birth_date DATE,
  shipping_phone STRING,
  shipping_address_line1 STRING,
  shipping_address_line2 STRING,
  shipping_address_city STRING,
  shipping_address_state STRING,
  shipping_address_zip_code STRING,
  billing_first_name STRING,
  billing_last_name STRING,
  billing_birth_date DATE,
  billing_phone STRING,
  billing_address_line1 STRING,
  billing_address_line2 STRING,
  billing_address_city STRING,
  billing_address_state STRING,
  billing_address_zip_code STRING,
  customer_type STRING,
  customer_tags ARRAY<STRING>,
  `class` STRING,
  notes STRING,
  payment_type STRING,
  PRIMARY KEY (order_number) NOT ENFORCED
) WITH (
  'connector' = 'kafka',
  'topic' = 'wine.orders',
  'properties.bootstrap.servers' = 'localhost:9092',
  'properties.isolation.level' = 'read_committed',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-avro-confluent',
  'debezium-avro-confluent.url' = 'http://localhost:8081/apis/ccompat/v7'
);

CREATE TABLE customers (
  id BIGINT,
  accepts_marketing BOOLEAN,
  created_at TIMESTAMP(3),
  customer_type STRING,
  date_of_birth DATE,
  email STRING,
  first_name STRING,
  last_name STRING,
  lifetime_value DOUBLE,
  notes STRING,
  order_count DOUBLE,
  phone STRING,
  tags ARRAY<STRING>,
  updated_at TIMESTAMP(3),
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka',
  'topic' = 'wine.customers',
  'properties.bootstrap.servers' = 'localhost:9092',
  'properties.isolation.level' = 'read_committed',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-avro-confluent',
  'debezium-avro-confluent.url' = 'http://localhost:8081/apis/ccompat/v7'
);

CREATE TABLE inventory (
  sku STRING,
  cost DOUBLE,
  `location` STRING,
  product_name STRING,
  quantity_on_hand DOUBLE,
  quantity_reserved DOUBLE,
  reorder_point DOUBLE,
  variant_name STRING,
  PRIMARY KEY (sku) NOT ENFORCED
) WITH (
  'connector' = 'kafka',
  'topic' = 'wine.inventory',
  'properties.bootstrap.servers' = 'localhost:9092',
  'properties.isolation.level' = 'read_committed',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-avro-confluent',
  'debezium-avro-confluent.url' = 'http://localhost:8081/apis/ccompat/v7'
);

CREATE TABLE wine_clubs (
  id BIGINT,
  bottle_count DOUBLE,
  description STRING,
  discount_percent DOUBLE,
  frequency STRING,
  is_active BOOLEAN,
  name STRING,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka',
  'topic' = 'wine.wine-clubs',
  'properties.bootstrap.servers' = 'localhost:9092',
  'properties.isolation.level' = 'read_committed',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-avro-confluent',
  'debezium-avro-confluent.url' = 'http://localhost:8081/apis/ccompat/v7'
);

CREATE TABLE wine_club_members (
  id BIGINT,
  cancelled_at TIMESTAMP(3),
  created_at TIMESTAMP(3),
  customer_id DOUBLE,
  date_of_birth DATE,
  email STRING,
  first_name STRING,
  joined_at TIMESTAMP(3),
  last_name STRING,
  phone STRING,
  shipments DOUBLE,
  status STRING,
  updated_at TIMESTAMP(3),
  wine_club_id DOUBLE,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka',
  'topic' = 'wine.wine-club-members',
  'properties.bootstrap.servers' = 'localhost:9092',
  'properties.isolation.level' = 'read_committed',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-avro-confluent',
  'debezium-avro-confluent.url' = 'http://localhost:8081/apis/ccompat/v7'
);

CREATE TABLE products (
  id BIGINT,
  alcohol_percent DOUBLE,
  created_at TIMESTAMP(3),
  description STRING,
  is_active BOOLEAN,
  title STRING,
  `type` STRING,
  updated_at TIMESTAMP(3),
  varietal STRING,
  vintage DOUBLE,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka',
  'topic' = 'wine.products',
  'properties.bootstrap.servers' = 'localhost:9092',
  'properties.isolation.level' = 'read_committed',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'debezium-avro-confluent',
  'debezium-avro-confluent.url' = 'http://localhost:8081/apis/ccompat/v7'
);

CREATE TABLE order_status_changes (
  event_id STRING,
  order_number BIGINT,
  subject STRING,
  subject_id STRING,
  `field` STRING,
  `from` STRING,
  `to` STRING,
  changed_at TIMESTAMP(3),
  observed_at TIMESTAMP(3)
) WITH (
  'connector' = 'kafka',
  'topic' = 'wine.order-status-changes',
  'properties.bootstrap.servers' = 'localhost:9092',
  'properties.isolation.level' = 'read_committed',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'avro-confluent',
  'avro-confluent.url' = 'http://localhost:8081/apis/ccompat/v7'
);
