// Package dapr runs Dapr's own conformance suite against KeystoneDB: the stock components pointed at
// its doors, and its own state store as a sidecar plugs it in. See ../daprd.
package dapr

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	contrib "github.com/dapr/components-contrib/state"
	"github.com/dapr/components-contrib/state/aws/dynamodb"
	"github.com/dapr/components-contrib/state/redis"
	conformance "github.com/dapr/components-contrib/tests/conformance/state"
	"github.com/dapr/dapr/pkg/components/state"
	"github.com/dapr/kit/logger"
)

var log = logger.NewLogger("conformance")

// check runs every case that these operations have. A name that the suite knows makes it leave out
// what that store cannot do.
func check(t *testing.T, name string, store contrib.Store, properties map[string]string, operations ...string) {
	config, err := conformance.NewTestConfig(name, operations, map[string]any{"badEtag": "9999999"})
	if err != nil {
		t.Fatal(err)
	}
	conformance.ConformanceTests(t, properties, store, config)
}

func given(t *testing.T, variable string) string {
	value := os.Getenv(variable)
	if value == "" {
		t.Fatalf("%s says where the server is", variable)
	}
	return value
}

func TestTheStockRedisStoreAtTheRedisDoor(t *testing.T) {
	properties := map[string]string{"redisHost": given(t, "REDIS_HOST"), "redisPassword": ""}
	store := redis.NewRedisStateStore(log)
	check(t, "redis.v7", store, properties,
		"transaction", "etag", "first-write", "ttl", "actorStateStore", "keyslike")
}

func TestTheStockDynamoDBStoreAtTheDynamoDBDoor(t *testing.T) {
	properties := map[string]string{
		"endpoint": given(t, "AWS_ENDPOINT_URL"), "region": "us-east-1",
		"accessKey": "tour", "secretKey": "tour",
		"table": given(t, "DAPR_TABLE"), "ttlAttributeName": "expiresAt",
	}
	store := dynamodb.NewDynamoDBStateStore(log)
	check(t, "aws.dynamodb.terraform", store, properties, "transaction", "etag", "first-write", "ttl")
}

func TestTheComponentThatASidecarPlugsIn(t *testing.T) {
	inner := state.NewGRPCStateStore(log, given(t, "DAPR_COMPONENT_SOCKET"))
	check(t, "keystonedb", plugged{inner, inner, inner}, map[string]string{},
		"transaction", "etag", "first-write", "query", "ttl", "actorStateStore")
}

// plugged is a store behind Dapr's client of pluggable components. That client has only one error for
// a bulk request, and the suite wants one for each key that failed: ours names the key.
type plugged struct {
	contrib.Store
	contrib.TransactionalStore
	contrib.Querier
}

func (store plugged) BulkSet(ctx context.Context, requests []contrib.SetRequest, options contrib.BulkStoreOpts) error {
	return naming(requests, store.Store.BulkSet(ctx, requests, options))
}

func (store plugged) BulkDelete(ctx context.Context, requests []contrib.DeleteRequest, options contrib.BulkStoreOpts) error {
	return naming(requests, store.Store.BulkDelete(ctx, requests, options))
}

func naming[T contrib.StateRequest](requests []T, err error) error {
	if err != nil {
		for _, request := range requests {
			if strings.Contains(err.Error(), request.GetKey()) {
				return errors.Join(contrib.NewBulkStoreError(request.GetKey(), err))
			}
		}
	}
	return err
}
