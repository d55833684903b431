package controller

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"myproxy.dev/operator/api/v1alpha1"
)

func TestANewMyProxyCostsOneWriteAChildAndOneForEachStateSeen(t *testing.T) {
	o := newCluster(t).startOperator()
	o.apply("shop", "replicas: 1")
	o.settle()
	want := []string{
		"PATCH configmaps shop-" + o.proxy("shop").Status.ConfigHash, "PATCH deployments shop", "PATCH services shop",
		"PATCH myproxies/status shop",
	}
	if got := o.takeWrites(); !slices.Equal(got, want) {
		t.Errorf("it wrote %q, want %q", got, want)
	}
	set := o.replicaSet(o.deployment("shop"), 1)
	pod := o.pod(set, "shop-1")
	o.wantPods("shop", 0, "shop-1")
	o.serve(pod)
	o.wantPods("shop", 1, "shop-1")
	o.wantCondition("shop", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonServing)
	o.settle()
	want = []string{"PATCH myproxies/status shop", "PATCH myproxies/status shop"}
	if got := o.takeWrites(); !slices.Equal(got, want) {
		t.Errorf("a pod that came and served: it wrote %q, want %q", got, want)
	}
}
