package controller

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"myproxy.dev/operator/api/v1alpha1"
)

// live leads a fleet from nothing through a rollout to two pods that serve, and leaves it so.
func (o *operator) live(name string) {
	o.t.Helper()
	o.apply(name, "replicas: 2")
	old := o.readyPod(o.replicaSet(o.deployment(name), 1), name+"-old")
	o.apply(name, "{replicas: 2, image: nginx:other}")
	o.eventually("the new template is applied", func() error {
		if got := o.deployment(name).Spec.Template.Spec.Containers[0].Image; got != "nginx:other" {
			return fmt.Errorf("its image is %s", got)
		}
		return nil
	})
	set := o.replicaSet(o.deployment(name), 2)
	o.readyPod(set, name+"-1")
	o.deletePod(old)
	o.readyPod(set, name+"-2")
	o.wantPods(name, 2, name+"-1", name+"-2")
	o.wantCondition(name, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonServing)
}

func TestItConvergesWhenOneWatchIsLate(t *testing.T) {
	for _, resource := range []string{"replicasets", "myproxies", "pods", "deployments", "services", "configmaps", ""} {
		t.Run("late: "+resource, func(t *testing.T) {
			o := newCluster(t).startOperator()
			o.delay(resource, 2*time.Second)
			o.live("shop")
		})
	}
}

func TestWithCachesTwoSecondsLateNothingIsWrittenTwice(t *testing.T) {
	o := newCluster(t).startOperator()
	o.delay("", 2*time.Second)
	o.apply("shop", "replicas: 0")
	o.settle()
	if got := o.takeWrites(); len(got) != 4 {
		t.Errorf("a new MyProxy took %q, want one write for each of three children and one of the status", got)
	}
}

func TestItConvergesWhenItsWatchesAreCutAgainAndAgain(t *testing.T) {
	o := newCluster(t).startOperator()
	ctx, cancel := context.WithCancel(t.Context())
	var cutter sync.WaitGroup
	cutter.Go(func() {
		for tick := time.NewTicker(200 * time.Millisecond); ctx.Err() == nil; {
			select {
			case <-tick.C:
				o.cut("")
			case <-ctx.Done():
			}
		}
	})
	defer cutter.Wait()
	defer cancel()
	o.live("shop")
}

func TestItConvergesWhenTheAPIServerGoesAndComesBack(t *testing.T) {
	o := newCluster(t).startOperator()
	o.apply("shop", "replicas: 1")
	set := o.replicaSet(o.deployment("shop"), 1)
	first := o.readyPod(set, "shop-1")
	o.wantPods("shop", 1, "shop-1")
	o.settle()
	o.goDown(true)
	o.deletePod(first)
	o.readyPod(set, "shop-2")
	o.apply("shop", "{replicas: 1, image: nginx:other}")
	o.goDown(false)
	o.wantPods("shop", 1, "shop-2")
	o.wantCondition("shop", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
	o.settle()
}

func TestAChildThatCameAndWentWhileTheWatchWasCutComesBack(t *testing.T) {
	o := newCluster(t).startOperator()
	o.apply("first", "replicas: 0")
	o.wantCondition("first", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonScaledToZero)
	o.delay("services", time.Hour) // a watch that tells nothing, and then is cut
	o.apply("shop", "replicas: 0")
	o.wantCondition("shop", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonScaledToZero)
	first := o.service()
	if err := o.client.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	var expired atomic.Bool
	o.disturb(func(r request) *http.Response { // the watch can't go on from where it was, and lists anew
		if r.resource == "services" && strings.Contains(r.query, "watch=true") && !strings.Contains(r.query, "sendInitialEvents") && !expired.Swap(true) {
			return apiStatus(410, "Expired", "too old resource version")
		}
		return nil
	})
	o.delay("services", 0)
	o.cut("services")
	o.eventually("it comes back, when the answer has lapsed that no cache confirmed", func() error {
		service := &corev1.Service{}
		if err := o.client.Get(t.Context(), client.ObjectKeyFromObject(first), service); err != nil || service.UID == first.UID {
			return fmt.Errorf("it is %s (%w)", service.UID, err)
		}
		return nil
	})
}

func TestItConvergesWhenTheAPIServerRefusesEveryThirdRequest(t *testing.T) {
	for code, reason := range map[int]string{409: "Conflict", 429: "TooManyRequests", 500: "InternalError", 504: "Timeout"} {
		t.Run(reason, func(t *testing.T) {
			o := newCluster(t).startOperator()
			var n atomic.Int64
			o.disturb(func(r request) *http.Response {
				if r.method == http.MethodPatch && n.Add(1)%3 != 0 {
					return apiStatus(code, reason, fmt.Sprintf("attempt %d from 127.0.0.1:%d", n.Load(), 40000+n.Load()))
				}
				return nil
			})
			o.live("shop")
			o.settle()
			if got := len(o.takeWrites()); got > 90 {
				t.Errorf("it took %d writes", got)
			}
		})
	}
}

func TestAChildThatTheAPIServerDoesNotTakeIsToldOnceAndStopsOnlyWhatNeedsIt(t *testing.T) {
	for resource, has := range map[string]struct{ there, missing client.Object }{
		"configmaps": {&corev1.Service{}, foreignDeployment(nil)}, "services": {foreignDeployment(nil), &corev1.Service{}},
	} {
		t.Run(resource, func(t *testing.T) {
			o := newCluster(t).startOperator()
			var attempts atomic.Int64
			o.disturb(func(r request) *http.Response {
				if r.method == http.MethodPatch && r.resource == resource {
					return apiStatus(500, "InternalError", fmt.Sprintf("read tcp 127.0.0.1:%d: reset", 40000+attempts.Add(1)))
				}
				return nil
			})
			o.apply("shop", "replicas: 0")
			told := o.wantCondition("shop", v1alpha1.ConditionAccepted, metav1.ConditionUnknown, v1alpha1.ReasonApplyFailed)
			if strings.Contains(told.Message, "tcp") {
				t.Errorf("it says %q: an address that changes with each attempt", told.Message)
			}
			o.eventually("it is tried again", func() error {
				if got := attempts.Load(); got < 6 {
					return fmt.Errorf("%d times", got)
				}
				return nil
			})
			if got := occurrences(o.writes(), statusWriteOfShop); got != 1 {
				t.Errorf("%d status writes for one failure", got)
			}
			key := client.ObjectKey{Namespace: o.namespace, Name: "shop"}
			if err := o.client.Get(t.Context(), key, has.there); err != nil {
				t.Errorf("its sibling is not there: %v", err)
			}
			if err := o.client.Get(t.Context(), key, has.missing); err == nil {
				t.Error("what needs it, or it itself, is there")
			}
			o.disturb(nil)
			o.wantCondition("shop", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonScaledToZero)
		})
	}
}

func TestARefusedChildIsToldWithItsFieldAndNotSentAgainBeforeAMinute(t *testing.T) {
	o := newCluster(t).startOperator()
	o.apply("shop", "{replicas: 1, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}")
	told := o.wantCondition("shop", v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonRefused)
	const field = "spec.template.spec.containers[0].resources.requests"
	if !strings.Contains(told.Message, "Deployment shop: ") || !strings.Contains(told.Message, field) {
		t.Errorf("it says %q, want the Deployment and %s", told.Message, field)
	}
	o.wantCondition("shop", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonRefused)
	o.wantCondition("shop", v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonBlocked)
	o.wantCondition("shop", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonRefused)
	o.service()
	o.settle()
	o.takeWrites()
	for i := range 5 {
		o.patch(o.proxy("shop"), "test", fmt.Sprintf(`{"metadata":{"labels":{"touched":"%d"}}}`, i))
		o.settle()
	}
	o.wantWrites("five passes")
	o.apply("shop", "replicas: 0")
	o.wantCondition("shop", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonScaledToZero)
}

func TestEightPassesAreUnderWayAtOnce(t *testing.T) {
	c := newCluster(t)
	for i := range 10 {
		c.apply(fmt.Sprintf("shop-%d", i), "replicas: 0")
	}
	wire := newWire()
	release := make(chan struct{})
	var held atomic.Int64
	wire.disturb(func(r request) *http.Response {
		if r.method == http.MethodPatch {
			held.Add(1)
			<-release
		}
		return nil
	})
	go func() { // the caches sync before the workers start
		defer close(release)
		for deadline := time.Now().Add(20 * time.Second); held.Load() < workerCount && time.Now().Before(deadline); {
			time.Sleep(10 * time.Millisecond) // between two polls
		}
	}()
	o := c.startOperatorWith(wire, clock.RealClock{})
	<-release
	if got := held.Load(); got < workerCount {
		t.Errorf("%d passes wait for an answer, want %d", got, workerCount)
	}
	o.settle()
}

func TestTwoHundredMyProxiesAreServedDuringAStormOfPodEvents(t *testing.T) {
	c := newCluster(t)
	for i := range 200 {
		if err := c.tryApply(fmt.Sprintf("many-%d", i), "replicas: 0"); err != nil {
			t.Fatal(err)
		}
	}
	before := c.startOperator()
	before.apply("storm", "replicas: 1")
	set := before.replicaSet(before.deployment("storm"), 1)
	pod := before.readyPod(set, "storm-1")
	before.wantPods("storm", 1, "storm-1")
	before.stop()
	var all v1alpha1.MyProxyList
	if err := c.client.List(t.Context(), &all, client.InNamespace(c.namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range all.Items {
		c.patchStatus(&all.Items[i], "wiper", `{"status":null}`)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var storm sync.WaitGroup
	storm.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			status := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":"%s"}]}}`, []string{"True", "False"}[i%2])
			if err := c.client.Status().Patch(ctx, pod, client.RawPatch("application/merge-patch+json", []byte(status))); err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
		}
	})
	defer storm.Wait()
	defer cancel()
	c.startOperator()
	c.eventually("all have a status, while the storm goes on", func() error {
		if err := c.client.List(t.Context(), &all, client.InNamespace(c.namespace)); err != nil {
			return err
		}
		for _, proxy := range all.Items {
			if proxy.Status.ObservedGeneration == nil {
				return fmt.Errorf("%s has none", proxy.Name)
			}
		}
		return nil
	})
}
