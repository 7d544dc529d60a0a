// Command daprd is Dapr's sidecar with the two stock state stores that have a door at KeystoneDB, and
// with those that are plugged in over a socket; none of the hundred other components, so that it
// builds in minutes. It announces itself to nobody. Its options are the sidecar's own.
package main

import (
	"context"
	"os"

	"github.com/dapr/components-contrib/state/aws/dynamodb"
	"github.com/dapr/components-contrib/state/redis"
	"github.com/dapr/dapr/cmd/daprd/options"
	"github.com/dapr/dapr/pkg/components/state"
	"github.com/dapr/dapr/pkg/healthz"
	"github.com/dapr/dapr/pkg/metrics"
	"github.com/dapr/dapr/pkg/modes"
	"github.com/dapr/dapr/pkg/runtime"
	"github.com/dapr/dapr/pkg/runtime/registry"
	"github.com/dapr/dapr/pkg/security"
	"github.com/dapr/kit/concurrency"
	"github.com/dapr/kit/logger"
	"github.com/dapr/kit/signals"
	"go.opencensus.io/stats/view"
)

var log = logger.NewLogger("daprd")

func main() {
	given, err := options.New(os.Args[1:])
	if err == nil {
		err = logger.ApplyOptionsToLoggers(&given.Logger)
	}
	if err == nil {
		err = run(signals.Context(), given)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, given *options.Options) error {
	stores := state.DefaultRegistry
	stores.Logger = log
	stores.RegisterComponent(redis.NewRedisStateStore, "redis")
	stores.RegisterComponent(dynamodb.NewDynamoDBStateStore, "aws.dynamodb")
	health := healthz.New()
	provider, err := security.New(ctx, security.Options{
		ControlPlaneTrustDomain: given.ControlPlaneTrustDomain,
		ControlPlaneNamespace:   given.ControlPlaneNamespace,
		AppID:                   given.AppID,
		Mode:                    modes.StandaloneMode,
		Healthz:                 health,
	})
	if err != nil {
		return err
	}
	sidecar := func(ctx context.Context) error {
		handler, err := provider.Handler(ctx)
		if err != nil {
			return err
		}
		made, err := runtime.FromConfig(ctx, &runtime.Config{
			AppID:                         given.AppID,
			ActorsService:                 given.ActorsService,
			RemindersService:              given.RemindersService,
			AllowedOrigins:                given.AllowedOrigins,
			ApplicationPort:               given.AppPort,
			AppChannelAddress:             given.AppChannelAddress,
			AppProtocol:                   given.AppProtocol,
			Config:                        given.Config,
			DaprAPIGRPCPort:               given.DaprAPIGRPCPort,
			DaprAPIListenAddresses:        given.DaprAPIListenAddresses,
			DaprGracefulShutdownSeconds:   given.DaprGracefulShutdownSeconds,
			DaprHTTPPort:                  given.DaprHTTPPort,
			DaprInternalGRPCListenAddress: given.DaprInternalGRPCListenAddress,
			DaprInternalGRPCPort:          given.DaprInternalGRPCPort,
			DaprPublicListenAddress:       given.DaprPublicListenAddress,
			DaprPublicPort:                given.DaprPublicPort,
			DisableBuiltinK8sSecretStore:  given.DisableBuiltinK8sSecretStore,
			EnableAPILogging:              given.EnableAPILogging,
			DaprBlockShutdownDuration:     given.DaprBlockShutdownDuration,
			MaxRequestSize:                given.MaxRequestSize,
			Metrics:                       metrics.Options{Log: log, Healthz: health, Meter: view.NewMeter()},
			Mode:                          given.Mode,
			ProfilePort:                   given.ProfilePort,
			ReadBufferSize:                given.ReadBufferSize,
			ResourcesPath:                 given.ResourcesPath,
			Registry:                      registry.NewOptions().WithStateStores(stores),
			SchedulerStreams:              given.SchedulerJobStreams,
			Security:                      handler,
			Healthz:                       health,
		})
		if err != nil {
			return err
		}
		return made.Run(ctx)
	}
	return concurrency.NewRunnerManager(provider.Run, sidecar).Run(ctx)
}
