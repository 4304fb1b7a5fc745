// The topic of the orders in Go, with franz-go and hamba/avro:
//
//	go -C examples/08-go run .     # with `npm start` in another terminal
package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math/big"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/hamba/avro/v2"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Order has the fields that this program needs; the decoder skips the others.
// A decimal that may be null has the type any: hamba/avro reads zero into a *big.Rat (hamba/avro issue 453).
type Order struct {
	PaymentStatus *string `avro:"payment_status"`
	TotalPrice    any     `avro:"total_price"` // *big.Rat or nil
}

// Event is the envelope of a change.
type Event struct {
	Before  *Order   `avro:"before"`
	After   *Order   `avro:"after"`
	Op      string   `avro:"op"`
	Changed []string `avro:"changed"`
}

// Decoder decodes Confluent's wire format: a zero byte, the id of the schema in four bytes, then Avro.
type Decoder struct {
	registry string
	schemas  map[uint32]avro.Schema
}

func (d *Decoder) decode(value []byte, into any) error {
	if len(value) < 5 || value[0] != 0 {
		return errors.New("not in Confluent's wire format")
	}
	id := binary.BigEndian.Uint32(value[1:5])
	schema, ok := d.schemas[id]
	if !ok {
		var err error
		if schema, err = d.fetch(id); err != nil {
			return fmt.Errorf("schema %d: %w", id, err)
		}
		d.schemas[id] = schema
	}
	return avro.Unmarshal(schema, value[5:], into)
}

func (d *Decoder) fetch(id uint32) (avro.Schema, error) {
	response, err := http.Get(fmt.Sprintf("%s/schemas/ids/%d", d.registry, id))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the registry responded %s", response.Status)
	}
	var body struct {
		Schema string `json:"schema"`
	}
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil {
		return nil, err
	}
	// A cache of its own: versions of one schema share their name.
	return avro.ParseWithCache(body.Schema, "", &avro.SchemaCache{})
}

func status(order *Order) string {
	if order == nil || order.PaymentStatus == nil {
		return "-"
	}
	return *order.PaymentStatus
}

func describe(key string, event *Event) string {
	total := "-"
	if order := cmp.Or(event.After, event.Before); order != nil {
		if price, ok := order.TotalPrice.(*big.Rat); ok {
			total = price.FloatString(2)
		}
	}
	return fmt.Sprintf("%s %s %s -> %s %s %s",
		key, event.Op, status(event.Before), status(event.After), total, strings.Join(event.Changed, ","))
}

func main() {
	log.SetFlags(0)
	brokers := cmp.Or(os.Getenv("KAFKA_BROKERS"), "127.0.0.1:9092")
	decoder := &Decoder{
		registry: cmp.Or(os.Getenv("SCHEMA_REGISTRY_URL"), "http://127.0.0.1:8081/apis/ccompat/v7"),
		schemas:  map[uint32]avro.Schema{},
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(brokers, ",")...),
		kgo.ConsumerGroup("go"),
		kgo.ConsumeTopics(cmp.Or(os.Getenv("TOPIC_PREFIX"), "wine")+".orders"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		// Without it the client reads the events of aborted transactions.
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close() // leaves the group, with the offsets committed
	if err := client.Ping(ctx); err != nil {
		log.Fatalf("no Kafka at %s: start the demo first, in another terminal (npm start)", brokers)
	}

	for {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return
		}
		for _, failed := range fetches.Errors() {
			log.Printf("%s, partition %d: %v", failed.Topic, failed.Partition, failed.Err)
		}
		fetches.EachRecord(func(record *kgo.Record) {
			key := string(record.Key)
			if record.Value == nil { // a tombstone: it lets compaction remove the key
				fmt.Println(key, "tombstone")
				return
			}
			var event Event
			if err := decoder.decode(record.Value, &event); err != nil {
				log.Fatalf("%s, partition %d, offset %d: %v", record.Topic, record.Partition, record.Offset, err)
			}
			fmt.Println(describe(key, &event))
		})
	}
}
