// Command manager is the MyProxy operator.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"myproxy.dev/operator/api/v1alpha1"
	"myproxy.dev/operator/controller"
)

// shutdownTimeout is for how long passes that are under way may go on after SIGTERM.
const shutdownTimeout = 6 * time.Second

type options struct {
	nginxImage              string
	metricsAddress          string
	probeAddress            string
	leaderElect             bool
	leaderElectionNamespace string
}

func main() {
	var o options
	flag.StringVar(&o.nginxImage, "nginx-image", "docker.io/library/nginx:1.30.0",
		"The image of nginx, 1.28 or newer, of MyProxies that name none.")
	flag.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", "Where metrics are served; 0: nowhere.")
	flag.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "Where /healthz and /readyz are served; 0: nowhere.")
	flag.BoolVar(&o.leaderElect, "leader-elect", false, "Work only while this process holds the lease, so that several can stand by.")
	flag.StringVar(&o.leaderElectionNamespace, "leader-election-namespace", "",
		"The namespace of the lease. Default: that of the pod that this runs in.")
	logging := zap.Options{}
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	if flag.NArg() > 0 { // all that comes after it would be ignored: `--leader-elect false` says two things
		fmt.Fprintf(flag.CommandLine.Output(), "%q is no flag (the value of one that is true or false stands after =)\n", flag.Arg(0))
		flag.Usage()
		os.Exit(2)
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))

	if err := run(o); err != nil {
		ctrl.Log.Error(err, "the operator ends")
		os.Exit(1)
	}
}

func run(o options) error {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	ctx := ctrl.SetupSignalHandler()
	// What comes before the start asks the API server, which may hang, and leaves nothing to end in order.
	started := context.AfterFunc(ctx, func() { os.Exit(0) })
	mgr, err := ctrl.NewManager(unlimited(config), ctrl.Options{
		Scheme:                        scheme,
		Cache:                         cache.Options{ByObject: controller.CachedObjects()},
		Metrics:                       metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:        o.probeAddress,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              "myproxy-operator.gateway.myproxy.dev",
		LeaderElectionNamespace:       o.leaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true, // nothing runs after the manager: the next one need not wait for the lease to end
		GracefulShutdownTimeout:       new(shutdownTimeout),
	})
	if err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}
	metrics.Registry.MustRegister(controller.Metrics()...)
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("serve /healthz: %w", err)
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("serve /readyz: %w", err)
	}
	reconciler := controller.NewReconciler(mgr.GetClient(), mgr.GetAPIReader(), clock.RealClock{}, o.nginxImage)
	if err := reconciler.SetupWithManager(ctx, mgr); err != nil {
		return err
	}
	started()
	// The manager does not look at the signal while its caches fill, which they never do without the right to list.
	context.AfterFunc(ctx, func() { time.AfterFunc(shutdownTimeout+time.Second, func() { os.Exit(0) }) })
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}

// unlimited turns the client's rate limits off: fairness is the API server's job.
func unlimited(config *rest.Config) *rest.Config {
	config.QPS = -1
	return config
}
