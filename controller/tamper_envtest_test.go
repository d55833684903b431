package controller

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"myproxy.dev/operator/api/v1alpha1"
	gatewayac "myproxy.dev/operator/applyconfigurations/api/v1alpha1"
)

// wantContent waits until the status is the one that it was.
func (o *operator) wantContent(what string, want v1alpha1.MyProxyStatus) {
	o.t.Helper()
	o.eventually(what+": the status is put back", func() error {
		if got := o.proxy("shop").Status; contentOf(got) != contentOf(want) {
			return fmt.Errorf("it is %+v", got)
		}
		return nil
	})
	o.settle()
}

func TestWhatSomebodyElseWritesIntoTheStatusIsPutBackByOneWrite(t *testing.T) {
	o := newCluster(t).startOperator()
	o.apply("shop", "replicas: 1")
	o.readyPod(o.replicaSet(o.deployment("shop"), 1), "shop-1")
	o.wantCondition("shop", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonServing)
	o.settle()
	want := o.proxy("shop").Status
	o.takeWrites()
	for what, forgery := range map[string]string{
		"a count":                          `{"status":{"readyReplicas":7}}`,
		"a count that is removed":          `{"status":{"replicas":null}}`,
		"the names":                        `{"status":{"pod_names":["forged"]}}`,
		"an entry in an empty list":        `{"status":{"unavailablePods":[{"name":"forged","reason":"Forged"}]}}`,
		"an empty list that is removed":    `{"status":{"unavailablePods":null}}`,
		"the addresses":                    `{"status":{"addresses":[{"type":"IPAddress","value":"10.9.9.9"}]}}`,
		"the configuration's hash":         `{"status":{"configHash":"forged"}}`,
		"the selector, which is removed":   `{"status":{"selector":null}}`,
		"the whole status":                 `{"status":null}`,
		"the conditions, which are ours":   `{"status":{"conditions":null}}`,
		"the observed generation":          `{"status":{"observedGeneration":99}}`,
		"the conditions, one of them ours": `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Forged","message":"","lastTransitionTime":"2020-01-01T00:00:00Z"}]}}`,
	} {
		o.patchStatus(o.proxy("shop"), "forger", forgery)
		o.wantContent(what, want)
		o.wantWrites(what, statusWriteOfShop)
	}
}

func TestAForgedConditionOfOurTypeGoesAndOneOfAnotherTypeStays(t *testing.T) {
	o := newCluster(t).startOperator()
	o.apply("shop", "replicas: 1")
	o.readyPod(o.replicaSet(o.deployment("shop"), 1), "shop-1")
	o.wantCondition("shop", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonServing)
	o.settle()
	forged := o.proxy("shop")
	for _, kind := range []string{v1alpha1.ConditionStalled, "Updated.example.com"} {
		forged.Status.Conditions = append(forged.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: "Forged", LastTransitionTime: metav1.Now(),
		})
	}
	o.updateStatus(forged)
	applied := gatewayac.MyProxy("shop", o.namespace).WithStatus(gatewayac.MyProxyStatus().WithConditions(foreignCondition("Applied.example.com", "Good")))
	if err := o.client.Status().Apply(t.Context(), applied, client.FieldOwner("neighbour")); err != nil {
		t.Fatal(err)
	}
	o.eventually("Stalled goes", func() error {
		if got := o.proxy("shop").Status.Conditions; meta.FindStatusCondition(got, v1alpha1.ConditionStalled) != nil {
			return fmt.Errorf("the conditions are %+v", got)
		}
		return nil
	})
	o.settle()
	for _, kind := range []string{"Updated.example.com", "Applied.example.com"} {
		if meta.FindStatusCondition(o.proxy("shop").Status.Conditions, kind) == nil {
			t.Errorf("the condition %s of somebody else is gone", kind)
		}
	}
	o.takeWrites()
	o.patch(o.proxy("shop"), "test", `{"metadata":{"labels":{"a":"b"}}}`)
	o.wantWrites("at rest")
}

func foreignCondition(kind, reason string) *metav1ac.ConditionApplyConfiguration {
	return metav1ac.Condition().WithType(kind).WithStatus(metav1.ConditionTrue).WithReason(reason).WithMessage("").
		WithLastTransitionTime(metav1.Now())
}

func TestAStatusThatWasWrittenWithUpdateEndsAsOurs(t *testing.T) {
	for name, wipe := range map[string]bool{"with its managers": false, "with managedFields wiped": true} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			before := c.apply("shop", "replicas: 0")
			before.Status = v1alpha1.MyProxyStatus{
				PodNames: []string{"stale"}, Replicas: new(int32(3)), ReadyReplicas: new(int32(3)), UpdatedReplicas: new(int32(3)),
				Selector: "stale=true", ConfigHash: "stale",
				UnavailablePods: []v1alpha1.UnavailablePod{{Name: "stale", Reason: "Stale"}},
				Addresses:       []v1alpha1.Address{{Type: v1alpha1.AddressHostname, Value: "stale"}},
			}
			for _, kind := range append([]string{"Foreign"}, conditionTypes...) {
				before.Status.Conditions = append(before.Status.Conditions, metav1.Condition{
					Type: kind, Status: metav1.ConditionTrue, Reason: "Stale", Message: "stale", LastTransitionTime: metav1.Now(),
				})
			}
			c.updateStatus(before)
			if wipe {
				c.patch(before, "test", `{"metadata":{"managedFields":[{}]}}`)
			}
			o := c.startOperator()
			o.wantCondition("shop", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonScaledToZero)
			o.settle()
			got := o.proxy("shop").Status
			foreign := meta.FindStatusCondition(got.Conditions, "Foreign")
			if foreign == nil || foreign.Reason != "Stale" {
				t.Errorf("the condition of somebody else is %+v, want it as it was", foreign)
			}
			meta.RemoveStatusCondition(&got.Conditions, "Foreign")
			want := "Ready=True/ScaledToZero Accepted=True/Accepted ConfigValid=Unknown/Pending Available=False/ScaledToZero Progressing=False/Complete"
			slices.SortFunc(got.Conditions, func(a, b metav1.Condition) int {
				return slices.Index(conditionTypes, a.Type) - slices.Index(conditionTypes, b.Type)
			})
			if summary(got) != want {
				t.Errorf("the conditions are %s, want %s", summary(got), want)
			}
			if len(got.PodNames) != 0 || len(got.UnavailablePods) != 0 || *got.Replicas != 0 || *got.ReadyReplicas != 0 || *got.UpdatedReplicas != 0 ||
				got.Addresses[0].Value == "stale" || got.ConfigHash == "stale" || got.Selector == "stale=true" {
				t.Errorf("something stale is left in %+v", got)
			}
		})
	}
}

// Stalled that another manager wrote, and that is True for us too: what is left of it when we drop it is no valid condition.
func TestAStalledConditionThatIsCoOwnedGoesWhenItHeals(t *testing.T) {
	c := newCluster(t)
	before := c.apply("shop", "{replicas: 0, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}")
	before.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: "Stale", Message: "stale", LastTransitionTime: metav1.Now(),
	}}
	c.updateStatus(before)
	o := c.startOperator()
	o.wantCondition("shop", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonRefused)
	o.settle()
	o.apply("shop", "replicas: 0")
	o.wantCondition("shop", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonScaledToZero)
	o.eventually("Stalled goes", func() error {
		if got := o.proxy("shop").Status.Conditions; meta.FindStatusCondition(got, v1alpha1.ConditionStalled) != nil {
			return fmt.Errorf("the conditions are %+v", got)
		}
		return nil
	})
}

func TestARefusedConfigurationIsOneWriteHoweverOftenItsTestRestarts(t *testing.T) {
	o := newCluster(t).startOperator()
	o.apply("shop", "replicas: 1")
	set := o.replicaSet(o.deployment("shop"), 1)
	pod := o.pod(set, "shop-1")
	o.wantPods("shop", 0, "shop-1")
	o.settle()
	o.takeWrites()
	said := "2026/11/30 22:00:0%d [emerg] 1#1: unknown directive \"foo\" in /etc/myproxy/nginx.conf:3\nnginx: configuration file /etc/myproxy/nginx.conf test failed\n"
	for restart := range 5 {
		said := fmt.Sprintf(said, restart)
		o.configTestFails(pod, int32(restart), corev1.ContainerState{}, said)
		o.settle()
		o.configTestFails(pod, int32(restart), corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason: "CrashLoopBackOff", Message: fmt.Sprintf("back-off %ds restarting failed container=config-test pod=shop-1", 10<<restart),
		}}, said)
		o.settle()
		o.configTestFails(pod, int32(restart+1), corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}, said)
		o.settle()
	}
	o.wantWrites("five restarts, five lengths of a back-off", statusWriteOfShop)
	const words = `unknown directive "foo" in /etc/myproxy/nginx.conf:3`
	refused := o.wantCondition("shop", v1alpha1.ConditionConfigValid, metav1.ConditionFalse, v1alpha1.ReasonRefused)
	if refused.Message != words {
		t.Errorf("ConfigValid says %q, want %q", refused.Message, words)
	}
	o.wantCondition("shop", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonConfigRefused)
	o.wantCondition("shop", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonConfigRefused)
	o.deletePod(pod)
	o.wantPods("shop", 0)
	o.wantCondition("shop", v1alpha1.ConditionConfigValid, metav1.ConditionFalse, v1alpha1.ReasonRefused) // the verdict is the hash's
	o.readyPod(set, "shop-2")
	o.wantCondition("shop", v1alpha1.ConditionConfigValid, metav1.ConditionTrue, v1alpha1.ReasonServed)
	o.wantCondition("shop", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonServing)
}

func TestThirtyTwoWritersOnOtherFieldsOfTheStatusMakeNoConflict(t *testing.T) {
	o := newCluster(t).startOperator()
	o.apply("shop", "replicas: 1")
	set := o.replicaSet(o.deployment("shop"), 1)
	var conflicts sync.Map
	o.disturb(func(r request) *http.Response {
		if r.method == http.MethodPut {
			conflicts.Store(r.String(), true)
		}
		return nil
	})
	var writers sync.WaitGroup
	for i := range 32 {
		writers.Go(func() {
			for round := range 2 { // the API server serialises them: more take minutes
				condition := foreignCondition(fmt.Sprintf("Writer%d", i), fmt.Sprintf("Round%d", round))
				body := gatewayac.MyProxy("shop", o.namespace).WithStatus(gatewayac.MyProxyStatus().WithConditions(condition))
				err := o.client.Status().Apply(t.Context(), body, client.FieldOwner(fmt.Sprintf("writer-%d", i)))
				if err != nil && !apierrors.IsTimeout(err) {
					t.Error(err)
				}
			}
		})
	}
	for i := range 10 {
		o.deletePod(o.readyPod(set, fmt.Sprintf("shop-%d", i)))
	}
	o.readyPod(set, "shop-last")
	writers.Wait()
	o.wantPods("shop", 1, "shop-last")
	o.settle()
	conflicts.Range(func(request, _ any) bool {
		t.Errorf("it sent %v, and so no apply", request)
		return true
	})
	if got := o.codes()[http.StatusConflict]; got != 0 {
		t.Errorf("%d of its requests met a conflict", got)
	}
	for i := range 32 {
		if got := meta.FindStatusCondition(o.proxy("shop").Status.Conditions, fmt.Sprintf("Writer%d", i)); got == nil {
			t.Errorf("writer %d's condition is %+v", i, got)
		}
	}
}
