"""The orders' topic in Python.

    pip install -r examples/06-python/requirements.txt
    python3 examples/06-python/consumer.py      # with `npm start` in another terminal
"""

import os
import signal
import sys

from confluent_kafka import Consumer, KafkaException
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

BROKERS = os.environ.get("KAFKA_BROKERS") or "127.0.0.1:9092"
REGISTRY = os.environ.get("SCHEMA_REGISTRY_URL") or "http://127.0.0.1:8081/apis/ccompat/v7"
TOPIC = f"{os.environ.get('TOPIC_PREFIX') or 'wine'}.orders"


def describe(key: str, event: dict | None) -> str:
    if event is None:
        return f"{key} tombstone"  # behind a deletion, so that compaction forgets the key
    before, after = event["before"] or {}, event["after"] or {}
    status = f"{before.get('payment_status') or '-'} -> {after.get('payment_status') or '-'}"
    total = (after or before)["total_price"]  # a Decimal, or None
    return f"{key} {event['op']} {status} {'-' if total is None else f'{total:.2f}'} {','.join(event['changed'])}"


def main() -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": BROKERS,
            "group.id": "python",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",  # the default, said aloud: aborted events are none
            "log_level": 0,  # else a line for each try to connect; errors come here:
            "error_cb": lambda error: print(error, file=sys.stderr),
        }
    )
    decode = AvroDeserializer(SchemaRegistryClient({"url": REGISTRY}))
    try:
        consumer.list_topics(timeout=5)
    except KafkaException:
        sys.exit(f"no Kafka at {BROKERS}: start the demo first, in another terminal (npm start)")

    running = True

    def stop(*_: object) -> None:
        nonlocal running
        running = False

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)

    consumer.subscribe([TOPIC])
    try:
        while running:
            message = consumer.poll(0.5)
            if message is None:
                continue
            if message.error():
                raise KafkaException(message.error())
            context = SerializationContext(TOPIC, MessageField.VALUE)
            print(describe(message.key().decode(), decode(message.value(), context)), flush=True)
    finally:
        consumer.close()  # leaves the group, with its offsets committed


if __name__ == "__main__":
    main()
