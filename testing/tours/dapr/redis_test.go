package dapr

import (
	"testing"

	lockStore "github.com/dapr/components-contrib/lock/redis"
	"github.com/dapr/components-contrib/pubsub/redis"
	lock "github.com/dapr/components-contrib/tests/conformance/lock"
	"github.com/dapr/components-contrib/tests/conformance/pubsub"
)

// What else Dapr keeps in Redis, at the Redis door. Its suite for configurations is not here: with
// these versions it ends its own subscriptions before it writes, and fails at Redis itself too.

func TestTheStockRedisLockAtTheRedisDoor(t *testing.T) {
	config, err := lock.NewTestConfig("redis.v7", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	properties := map[string]string{"redisHost": given(t, "REDIS_HOST"), "redisPassword": ""}
	lock.ConformanceTests(t, properties, lockStore.NewStandaloneRedisLock(log), config)
}

func TestTheStockRedisStreamsAtTheRedisDoor(t *testing.T) {
	options := map[string]any{"checkInOrderProcessing": false}
	config, err := pubsub.NewTestConfig("redis.v7", nil, options)
	if err != nil {
		t.Fatal(err)
	}
	properties := map[string]string{
		"redisHost": given(t, "REDIS_HOST"), "redisPassword": "", "consumerID": "conformance",
		"processingTimeout": "5s", "redeliverInterval": "1s", "concurrency": "1",
	}
	pubsub.ConformanceTests(t, properties, redis.NewRedisStreams(log), config)
}
