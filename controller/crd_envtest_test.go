package controller

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	dto "github.com/prometheus/client_model/go"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"myproxy.dev/operator/api/v1alpha1"
)

func TestAnOperatorThatIsNewerThanTheCRDSaysSoAndHealsWithinFiveMinutesOfItsUpdate(t *testing.T) {
	data, err := os.ReadFile("../config/crd/bases/gateway.myproxy.dev_myproxies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	current, older := &apiextensionsv1.CustomResourceDefinition{}, &apiextensionsv1.CustomResourceDefinition{}
	for _, crd := range []*apiextensionsv1.CustomResourceDefinition{current, older} {
		if err := yaml.UnmarshalStrict(data, crd); err != nil {
			t.Fatal(err)
		}
	}
	delete(older.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties, "unavailablePods")
	own := &envtest.Environment{CRDs: []*apiextensionsv1.CustomResourceDefinition{older}}
	config, err := own.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Stop() })

	c := newClusterAt(t, config)
	var said lines
	c.logger = funcr.New(func(_, line string) { said.add(line) }, funcr.Options{})
	clock := testclock.NewFakeClock(time.Now())
	before := counted(t)
	o := c.startOperatorWith(newWire(), clock)
	o.apply("shop", "replicas: 0")
	o.eventually("the refusal is counted", func() error {
		if got := counted(t) - before; got != 1 {
			return fmt.Errorf("%v times", got)
		}
		return nil
	})
	if !said.has("the API server refuses the status: is the CRD that of this operator?", "field not declared in schema") {
		t.Errorf("it does not say so: %q", said.all)
	}
	o.settle()
	o.takeWrites()
	for i := range 5 {
		o.patch(o.proxy("shop"), "test", fmt.Sprintf(`{"metadata":{"labels":{"touched":"%d"}}}`, i))
		o.settle()
	}
	o.wantWrites("five passes")

	if _, err := envtest.InstallCRDs(rest.CopyConfig(config), envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{current}}); err != nil {
		t.Fatal(err)
	}
	clock.Step(5 * time.Minute)
	o.eventually("the status is written", func() error {
		o.patch(o.proxy("shop"), "test", `{"metadata":{"labels":{"touched":"again"}}}`)
		if got := o.proxy("shop").Status.ObservedGeneration; got == nil {
			clock.Step(5 * time.Minute) // the API server takes up the new schema in its own time
			return errors.New("there is none")
		}
		return nil
	})
	o.wantCondition("shop", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonScaledToZero)
}

// counted is the metric of refused statuses.
func counted(t *testing.T) float64 {
	t.Helper()
	metric := &dto.Metric{}
	if err := statusRefusals.Write(metric); err != nil {
		t.Fatal(err)
	}
	return metric.GetCounter().GetValue()
}

// lines are what an operator logged.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
}

// has tells whether one line has all the parts.
func (l *lines) has(parts ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		n := 0
		for _, part := range parts {
			if strings.Contains(line, part) {
				n++
			}
		}
		if n == len(parts) {
			return true
		}
	}
	return false
}
