package controller

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"myproxy.dev/operator/api/v1alpha1"
)

// The suite runs against a real etcd and API server, without a controller manager: the tests play the Deployment controller
// and the kubelet themselves (fleet_test.go), and see every request of the operator (wire_test.go).

var (
	scheme       = runtime.NewScheme()
	serverConfig *rest.Config // set by startServer
	testServer   = &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
	}
)

// startServer starts etcd and the API server for the first test that needs them: those of pure functions, and the workers of a
// fuzzer, do not.
var startServer = sync.OnceValue(func() (err error) {
	testServer.ControlPlane.GetAPIServer().Configure().Set("service-cluster-ip-range", "10.0.0.0/16") // by default there are 254
	if serverConfig, err = testServer.Start(); err != nil {
		return fmt.Errorf("start etcd and the API server (`make test` fetches or builds them): %w", err)
	}
	serverConfig.QPS = -1
	return nil
})

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard()) // the tests look at requests and answers
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	code := m.Run()
	if serverConfig != nil {
		if err := testServer.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the API server:", err)
		}
	}
	os.Exit(code)
}

const testImage = "nginx:test"

// cluster is a namespace of a test, with the user's client: it is not the operator's, and what it sends is not counted.
type cluster struct {
	t         *testing.T
	config    *rest.Config
	logger    logr.Logger // of its operators
	client    client.Client
	namespace string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	if err := startServer(); err != nil {
		t.Fatal(err)
	}
	return newClusterAt(t, serverConfig)
}

// newClusterAt is a namespace at an API server of the test's own.
func newClusterAt(t *testing.T, config *rest.Config) *cluster {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := c.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return &cluster{t: t, config: config, logger: logr.Discard(), client: client.WithFieldOwner(c, "test"), namespace: namespace.Name}
}

// operator is one running operator that sees the cluster's namespace only.
type operator struct {
	*cluster
	*wire
	cache cache.Cache
	idle  float64 // busy() when this one started: a queue that is shut down leaves its depth behind
	stop  func()  // returns when it has stopped; more than once is fine
}

// startOperator runs an operator until the test ends or stop is called. Only one runs at a time: settle reads the process' metrics.
func (c *cluster) startOperator() *operator { return c.startOperatorWith(newWire(), clock.RealClock{}) }

func (c *cluster) startOperatorWith(wire *wire, clock clock.PassiveClock) *operator {
	c.t.Helper()
	operatorConfig := rest.CopyConfig(c.config)
	operatorConfig.Wrap(wire.wrap)
	mgr, err := ctrl.NewManager(operatorConfig, ctrl.Options{
		Scheme:     scheme,
		Logger:     c.logger,
		Cache:      cache.Options{ByObject: CachedObjects(), DefaultNamespaces: map[string]cache.Config{c.namespace: {}}},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	reconciler := NewReconciler(mgr.GetClient(), mgr.GetAPIReader(), clock, testImage)
	if err := reconciler.SetupWithManager(ctx, mgr); err != nil {
		c.t.Fatal(err)
	}
	done, idle := make(chan error, 1), busy()
	go func() { done <- mgr.Start(ctx); close(done) }()
	o := &operator{cluster: c, wire: wire, cache: mgr.GetCache(), idle: idle, stop: func() {
		cancel()
		if err := <-done; err != nil {
			c.t.Errorf("the operator ended: %v", err)
		}
	}}
	c.t.Cleanup(o.stop)
	if !o.cache.WaitForCacheSync(ctx) {
		c.t.Fatal("the caches did not sync")
	}
	return o
}

// settle waits until the operator has nothing more to do: its caches have what the API server has, and its queue is empty.
func (o *operator) settle() {
	o.t.Helper()
	quiet := 0 // a handler may be between the cache and the queue
	o.eventually("the operator is idle", func() error {
		if err := o.lag(); err != nil {
			quiet = 0
			return err
		}
		if quiet++; quiet < 3 {
			return fmt.Errorf("idle for %d polls", quiet)
		}
		return nil
	})
}

func (o *operator) lag() error {
	if due := busy() - o.idle; due > 0 {
		return fmt.Errorf("%v passes are due or under way", due)
	}
	labelled := client.HasLabels{labelFleet}
	for _, pair := range []struct {
		kind          string
		cached, there client.ObjectList
		options       []client.ListOption
	}{
		{"MyProxies", &v1alpha1.MyProxyList{}, &v1alpha1.MyProxyList{}, nil},
		{"Pods", &corev1.PodList{}, &corev1.PodList{}, []client.ListOption{labelled}},
		{"Deployments", &appsv1.DeploymentList{}, &appsv1.DeploymentList{}, []client.ListOption{labelled}},
		{"Services", &corev1.ServiceList{}, &corev1.ServiceList{}, []client.ListOption{labelled}},
		{"ReplicaSets", metadataList(kindReplicaSet), metadataList(kindReplicaSet), []client.ListOption{labelled}},
		{"ConfigMaps", metadataList(kindConfigMap), metadataList(kindConfigMap), []client.ListOption{labelled}},
	} {
		options := append([]client.ListOption{client.InNamespace(o.namespace)}, pair.options...)
		if err := o.cache.List(o.t.Context(), pair.cached, options...); err != nil {
			return err
		}
		if err := o.client.List(o.t.Context(), pair.there, options...); err != nil {
			return err
		}
		if cached, there := versions(pair.cached), versions(pair.there); cached != there {
			return fmt.Errorf("the cache has the %s %s, the API server %s", pair.kind, cached, there)
		}
	}
	return nil
}

// busy is how many passes are due or under way.
func busy() float64 {
	return gauge("workqueue_depth", "name", "myproxy") + gauge("controller_runtime_active_workers", "controller", "myproxy")
}

// versions are the names and resourceVersions of a list. (A map prints in the order of its keys.)
func versions(list client.ObjectList) string {
	all := map[string]string{}
	objects, err := runtimeObjects(list)
	utilruntime.Must(err)
	for _, object := range objects {
		all[object.GetName()] = object.GetResourceVersion()
	}
	return fmt.Sprint(all)
}

// gauge is the value of a metric of controller-runtime.
func gauge(name, label, value string) (sum float64) {
	families, err := metrics.Registry.Gather()
	utilruntime.Must(err)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, pair := range metric.GetLabel() {
				if family.GetName() == name && pair.GetName() == label && pair.GetValue() == value {
					sum += metric.GetGauge().GetValue()
				}
			}
		}
	}
	return sum
}

// eventually polls until the check passes, for half a minute at most.
func (c *cluster) eventually(what string, check func() error) {
	c.t.Helper()
	c.within(30*time.Second, what, check)
}

func (c *cluster) within(most time.Duration, what string, check func() error) {
	c.t.Helper()
	deadline := time.Now().Add(most)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("not within %s: %s: %v", most, what, err)
		}
		time.Sleep(10 * time.Millisecond) // between two polls
	}
}

// apply is `kubectl apply --server-side` of a MyProxy's spec, given as YAML.
func (c *cluster) apply(name, spec string) *v1alpha1.MyProxy {
	c.t.Helper()
	if err := c.tryApply(name, spec); err != nil {
		c.t.Fatalf("apply MyProxy %s: %v", name, err)
	}
	return c.proxy(name)
}

func (c *cluster) tryApply(name, spec string) error {
	c.t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("MyProxy"))
	object.SetNamespace(c.namespace)
	object.SetName(name)
	parsed := map[string]any{}
	if err := yaml.Unmarshal([]byte(spec), &parsed); err != nil {
		c.t.Fatal(err)
	}
	object.Object["spec"] = parsed
	return c.client.Apply(c.t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubectl"))
}

// proxy reads a MyProxy from the API server.
func (c *cluster) proxy(name string) *v1alpha1.MyProxy {
	c.t.Helper()
	proxy := &v1alpha1.MyProxy{}
	c.get(name, proxy)
	return proxy
}

// get reads an object of the namespace from the API server.
func (c *cluster) get(name string, object client.Object) {
	c.t.Helper()
	if err := c.client.Get(c.t.Context(), client.ObjectKey{Namespace: c.namespace, Name: name}, object); err != nil {
		c.t.Fatal(err)
	}
}

// rest is a client of the API's group without a typed answer.
func (c *cluster) rest() (rest.Interface, error) {
	config := rest.CopyConfig(c.config)
	config.APIPath, config.GroupVersion = "/apis", &v1alpha1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(config)
}
