import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URL;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.DecoderFactory;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Kafka Streams with exactly-once processing: joins the status changes of orders with a table of the orders. Writes to the topic
 * PREFIX.joined, for each change of a status of the order itself: "EVENT_ID FIELD TO FOUND", where FOUND is the status of the order in the table.
 * The topic PREFIX-join-statuses-changelog has the table: "PAYMENT_STATUS FULFILLMENT_STATUS" by the number of the order.
 * Arguments: brokers, URL of the registry's Confluent API, topic prefix, folder for the state.
 */
public class OrdersJoin {
  static final Map<Integer, Schema> schemas = new ConcurrentHashMap<>();

  public static void main(String[] args) {
    String registry = args[1];
    String prefix = args[2];
    Serde<GenericRecord> values =
        Serdes.serdeFrom((topic, record) -> null, (topic, bytes) -> decode(registry, bytes));
    Consumed<String, GenericRecord> consumed = Consumed.with(Serdes.String(), values);
    StreamsBuilder builder = new StreamsBuilder();
    KTable<String, String> statuses =
        builder.stream(prefix + ".orders", consumed)
            .mapValues(event -> event == null ? null : statusesOf((GenericRecord) event.get("after")))
            .toTable(
                Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("statuses")
                    .withKeySerde(Serdes.String())
                    .withValueSerde(Serdes.String()));
    builder.stream(prefix + ".order-status-changes", consumed)
        .filter((key, change) -> "order".equals(text(change, "subject")))
        .leftJoin(
            statuses,
            (change, order) -> {
              String field = text(change, "field");
              String[] found = order == null ? new String[] {"none", "none"} : order.split(" ", 2);
              String status = found["payment_status".equals(field) ? 0 : 1];
              return text(change, "event_id") + " " + field + " " + text(change, "to") + " " + status;
            })
        .to(prefix + ".joined", Produced.with(Serdes.String(), Serdes.String()));

    Properties settings = new Properties();
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, prefix + "-join");
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
    settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    settings.put(StreamsConfig.STATE_DIR_CONFIG, args[3]);
    KafkaStreams streams = new KafkaStreams(builder.build(), settings);
    Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
    streams.start();
  }

  static String statusesOf(GenericRecord order) {
    return order == null ? null : text(order, "payment_status") + " " + text(order, "fulfillment_status");
  }

  static String text(GenericRecord record, String field) {
    return String.valueOf(record.get(field));
  }

  static GenericRecord decode(String registry, byte[] bytes) {
    if (bytes == null) return null;
    ByteBuffer buffer = ByteBuffer.wrap(bytes, 1, 4);
    Schema schema = schemas.computeIfAbsent(buffer.getInt(), id -> schemaOf(registry, id));
    try {
      var decoder = DecoderFactory.get().binaryDecoder(bytes, 5, bytes.length - 5, null);
      return new GenericDatumReader<GenericRecord>(schema).read(null, decoder);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  static Schema schemaOf(String registry, int id) {
    try {
      var answer = new ObjectMapper().readTree(new URL(registry + "/schemas/ids/" + id));
      return new Schema.Parser().parse(answer.get("schema").asText());
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
