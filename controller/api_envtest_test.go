package controller

import (
	"fmt"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"myproxy.dev/operator/api/v1alpha1"
)

func TestTheAPIServerRefusesBadInputWithItsFieldAndASentence(t *testing.T) {
	const (
		label    = "must be a DNS-1035 label"
		image    = "must be an image reference"
		quantity = "must be a number of pods from 0 to 10000, or a percentage from 0% to 100%"
	)
	c := newCluster(t)
	for _, tc := range []struct{ name, spec, field, sentence string }{
		{"1shop", "{}", "metadata", "metadata.name is the fleet's name where spec.name is unset: it " + label},
		{"a.b", "{}", "metadata", label},
		{strings.Repeat("a", 51), "{}", "metadata", "at most 50 characters"},
		{"x", "name: Shop", "spec.name", label},
		{"x", "name: shop-", "spec.name", label},
		{"x", "name: 1shop", "spec.name", label},
		{"x", "name: ''", "spec.name", "at least 1 chars long"},
		{"x", "name: " + strings.Repeat("a", 51), "spec.name", "Too long: may not be more than 50"},
		{"x", "replicas: -1", "spec.replicas", "greater than or equal to 0"},
		{"x", "replicas: 10001", "spec.replicas", "less than or equal to 10000"},
		{"x", "image: ''", "spec.image", "at least 1 chars long"},
		{"x", "image: 'nginx:'", "spec.image", image},
		{"x", "image: 'nginx latest'", "spec.image", image},
		{"x", "image: Nginx", "spec.image", image},
		{"x", "image: Foo/nginx", "spec.image", image},
		{"x", "image: http://docker.io/nginx", "spec.image", image},
		{"x", "image: 'nginx@sha256:12'", "spec.image", image},
		{"x", "image: a//b", "spec.image", image},
		{"x", "image: /nginx", "spec.image", image},
		{"x", "image: nginx:1;2", "spec.image", image},
		{"x", "image: " + strings.Repeat("a", 513), "spec.image", "Too long: may not be more than 512"},
		{"x", "imagePullPolicy: Sometimes", "spec.imagePullPolicy", "supported values"},
		{"x", "imagePullSecrets: [{name: A}]", "spec.imagePullSecrets[0].name", "must be the name of a Secret"},
		{"x", "imagePullSecrets: [{name: a}, {name: a}]", "spec.imagePullSecrets", "duplicate entries"},
		{"x", "rollout: {}", "spec.rollout", "at least 1 properties"},
		{"x", "rollout: {maxSurge: 0}", "spec.rollout", "can't both be 0"},
		{"x", "rollout: {maxSurge: 0%, maxUnavailable: 0}", "spec.rollout", "can't both be 0"},
		{"x", "rollout: {maxSurge: -1}", "spec.rollout.maxSurge", quantity},
		{"x", "rollout: {maxSurge: 101%}", "spec.rollout.maxSurge", quantity},
		{"x", "rollout: {maxUnavailable: half}", "spec.rollout.maxUnavailable", quantity},
		{"x", "rollout: {progressDeadlineSeconds: 0}", "spec.rollout.progressDeadlineSeconds", "greater than or equal to 1"},
		{"x", "repliccas: 1", "spec.repliccas", "field not declared in schema"},
	} {
		err := c.tryApply(tc.name, tc.spec)
		if err == nil {
			t.Errorf("%s %s is accepted", tc.name, tc.spec)
			continue
		}
		if got := err.Error(); !strings.Contains(got, tc.field) || !strings.Contains(got, tc.sentence) {
			t.Errorf("%s %s is refused with %q, want the field %s and %q", tc.name, tc.spec, got, tc.field, tc.sentence)
		}
	}
}

func TestAnUnknownFieldIsRefusedWhereValidationIsStrict(t *testing.T) {
	c := newCluster(t)
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"repliccas": int64(1)}}}
	object.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("MyProxy"))
	object.SetNamespace(c.namespace)
	object.SetName("shop")
	err := client.WithFieldValidation(c.client, metav1.FieldValidationStrict).Create(t.Context(), object)
	if err == nil || !strings.Contains(err.Error(), `unknown field "spec.repliccas"`) {
		t.Errorf("got %v", err)
	}
}

func TestTheAPIServerAcceptsGoodInput(t *testing.T) {
	c := newCluster(t)
	for i, spec := range []string{
		"{}", "name: a-1", "replicas: 0", "replicas: 10000", "paused: true", "resources: {}",
		"image: nginx", "image: nginx:1.30", "image: docker.io/library/nginx:1.30.0-alpine", "image: localhost/nginx", "image: localhost:5000/a/b/c",
		"image: registry:5000/nginx", "image: 'UPPER.example.com:443/a_b/c__d/e-f:V1.2_3'", "image: '[::1]:5000/nginx'",
		"image: nginx@sha256:" + strings.Repeat("0", 64), "image: example.com/nginx:1@sha256:" + strings.Repeat("a", 64),
		"rollout: {maxSurge: 100%}", "rollout: {maxSurge: 0, maxUnavailable: 1}", "rollout: {maxUnavailable: 50%}", "rollout: {progressDeadlineSeconds: 1}",
		"imagePullSecrets: [{name: a.b}, {name: c}]", "imagePullPolicy: Never",
	} {
		if err := c.tryApply(fmt.Sprintf("x%d", i), spec); err != nil {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

func TestTheFleetsNameIsImmutable(t *testing.T) {
	c := newCluster(t)
	c.apply("shop", "{}")
	c.apply("other", "name: fleet")
	if err := c.tryApply("shop", "name: shop"); err != nil {
		t.Errorf("to write the default out: %v", err)
	}
	for name, spec := range map[string]string{"shop": "name: store", "other": "{}"} {
		err := c.tryApply(name, spec)
		if err == nil || !strings.Contains(err.Error(), "spec.name: Invalid value: the fleet's name is immutable") {
			t.Errorf("%s to %s: got %v", name, spec, err)
		}
	}
}

// Both are the API server's doing, and in the README.
func TestReplicasThatWereScaledConflictWithAnApplyOnlyIfTheyWereAppliedBefore(t *testing.T) {
	c := newCluster(t)
	c.apply("applied", "replicas: 2")
	c.apply("defaulted", "{}")
	for _, name := range []string{"applied", "defaulted"} {
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 5}}
		err := c.client.SubResource("scale").Update(t.Context(), c.proxy(name), client.WithSubResourceBody(scale), client.FieldOwner("kube-controller-manager"))
		if err != nil {
			t.Fatal(err)
		}
		if got := *c.proxy(name).Spec.Replicas; got != 5 {
			t.Fatalf("%s has %d replicas", name, got)
		}
	}
	err := c.tryApply("applied", "replicas: 2")
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "kube-controller-manager" with subresource "scale"`) {
		t.Errorf("applied before: got %v", err)
	}
	if err := c.tryApply("defaulted", "replicas: 2"); err != nil {
		t.Errorf("only defaulted: got %v", err)
	}
}

func TestTheTableOfMyProxiesShowsWhatServes(t *testing.T) {
	o := newCluster(t).startOperator()
	o.apply("shop", "replicas: 2")
	o.readyPod(o.replicaSet(o.deployment("shop"), 1), "shop-1")
	o.wantPods("shop", 1, "shop-1")
	table := &metav1.Table{}
	table.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("Table"))
	http, err := o.rest()
	if err != nil {
		t.Fatal(err)
	}
	err = http.Get().Namespace(o.namespace).Resource("myproxies").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Into(table)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for i, column := range table.ColumnDefinitions {
		cell := table.Rows[0].Cells[i]
		if column.Name == "Age" {
			cell = "-"
		}
		fmt.Fprintf(&got, "%s(%d)=%v ", column.Name, column.Priority, cell)
	}
	status := o.proxy("shop").Status
	want := fmt.Sprintf("Name(0)=shop Ready(0)=False Wanted(0)=2 Pods(0)=1 Serving(0)=1 Address(0)=%s Age(0)=- Reason(1)=RollingOut Config(1)=%s Image(1)=<nil> ",
		status.Addresses[0].Value, status.ConfigHash)
	if got.String() != want {
		t.Errorf("got  %s\nwant %s", got.String(), want)
	}
}
