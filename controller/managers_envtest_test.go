package controller

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"myproxy.dev/operator/api/v1alpha1"
	"myproxy.dev/operator/internal/managedfields"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares with testdata/NAME, or rewrites it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what it was (-update rewrites it); got:\n%s", path, got)
	}
}

func TestTheManagersOwnExactlyWhatTheGoldenFileSaysAfterABusyLife(t *testing.T) {
	o := newCluster(t).startOperator()
	o.apply("shop", "replicas: 1")
	first := o.replicaSet(o.deployment("shop"), 1)
	pod := o.readyPod(first, "shop-1")
	o.wantCondition("shop", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonServing)
	o.apply("shop", "{replicas: 1, image: nginx:other, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}") // refused
	o.wantCondition("shop", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonRefused)
	o.apply("shop", "{replicas: 1, image: nginx:other, imagePullSecrets: [{name: pull}], resources: {limits: {memory: 64Mi}}}")
	o.wantCondition("shop", v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonRollingOut)
	o.readyPod(o.replicaSet(o.deployment("shop"), 2), "shop-2")
	o.deletePod(pod)
	o.wantCondition("shop", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonServing)
	o.patchStatus(o.proxy("shop"), "forger", `{"status":{"pod_names":["forged"],"conditions":null}}`)
	o.wantPods("shop", 1, "shop-2")
	o.patch(o.service(), "drifter", `{"spec":{"ports":[{"name":"http","port":80,"targetPort":1}]}}`)
	o.settle()

	proxy := o.proxy("shop")
	configMap := &corev1.ConfigMap{}
	o.get("shop-"+proxy.Status.ConfigHash, configMap)
	var all strings.Builder
	for _, object := range []client.Object{proxy, configMap, o.deployment("shop"), o.service()} {
		fmt.Fprintf(&all, "%s\n", kindOf(object))
		for _, entry := range object.GetManagedFields() {
			if entry.Manager != statusManager && entry.Manager != childManager {
				continue
			}
			if entry.Operation != metav1.ManagedFieldsOperationApply {
				t.Errorf("%s has an %s of %s", kindOf(object), entry.Operation, entry.Manager)
			}
			fields, err := managedfields.Owned(object, entry.Manager, entry.Operation, entry.Subresource)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&all, "  %s %s %s\n", entry.Manager, entry.Operation, entry.Subresource)
			for _, field := range fields {
				fmt.Fprintf(&all, "    %s\n", strings.ReplaceAll(field, string(proxy.UID), "UID"))
			}
		}
	}
	golden(t, "managers.txt", all.String())
}
