package controller

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"myproxy.dev/operator/api/v1alpha1"
)

const statusWriteOfShop = "PATCH myproxies/status shop"

// wantWrites fails if what was written since the last time is not exactly this.
func (o *operator) wantWrites(what string, want ...string) {
	o.t.Helper()
	o.settle()
	if got := o.takeWrites(); !slices.Equal(got, want) {
		o.t.Errorf("%s: it wrote %q, want %q", what, got, want)
	}
}

// patch is a merge patch of an object by another manager.
func (c *cluster) patch(object client.Object, manager, patch string) {
	c.t.Helper()
	err := c.client.Patch(c.t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(manager))
	if err != nil {
		c.t.Fatal(err)
	}
}

// patchStatus is a merge patch of an object's status by another manager.
func (c *cluster) patchStatus(object client.Object, manager, patch string) {
	c.t.Helper()
	err := c.client.Status().Patch(c.t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(manager))
	if err != nil {
		c.t.Fatal(err)
	}
}

func TestANewMyProxyCostsOneWriteAChildAndOneForEachStateSeen(t *testing.T) {
	o := newCluster(t).startOperator()
	o.apply("shop", "replicas: 1")
	o.settle()
	o.wantWrites("a new MyProxy",
		"PATCH configmaps shop-"+o.proxy("shop").Status.ConfigHash, "PATCH deployments shop", "PATCH services shop", statusWriteOfShop)
	set := o.replicaSet(o.deployment("shop"), 1)
	pod := o.pod(set, "shop-1")
	o.wantPods("shop", 0, "shop-1")
	o.serve(pod)
	o.wantPods("shop", 1, "shop-1")
	o.wantCondition("shop", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonServing)
	o.wantWrites("a pod that came and served", statusWriteOfShop, statusWriteOfShop)
}

func TestEveryStepOfAPodsLifeIsInTheStatusByOneWrite(t *testing.T) {
	o := newCluster(t).startOperator()
	o.apply("shop", "replicas: 1")
	set := o.replicaSet(o.deployment("shop"), 1)
	o.settle()
	o.takeWrites()

	b := o.pod(set, "shop-b")
	o.wantPods("shop", 0, "shop-b")
	o.wantWrites("created", statusWriteOfShop)

	b.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
	o.updateStatus(b)
	o.wantWrites("scheduled: nothing that the status shows")

	o.serve(b)
	o.wantPods("shop", 1, "shop-b")
	o.wantWrites("ready", statusWriteOfShop)

	a := o.readyPod(set, "shop-a")
	o.wantPods("shop", 2, "shop-a", "shop-b")
	o.settle()
	o.takeWrites()

	b.Status.Conditions[1] = corev1.PodCondition{
		Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady",
		Message: "containers with unready status: [nginx]", LastTransitionTime: metav1.NewTime(time.Now().Add(time.Minute)),
	}
	b.Status.ContainerStatuses[0].Ready = false
	o.updateStatus(b)
	o.wantPods("shop", 1, "shop-a", "shop-b")
	o.wantWrites("unready", statusWriteOfShop)
	want := []v1alpha1.UnavailablePod{{Name: "shop-b", Reason: "ContainersNotReady", Message: "containers with unready status: [nginx]"}}
	if got := o.proxy("shop").Status.UnavailablePods; !slices.Equal(got, want) {
		t.Errorf("unavailablePods are %+v, want %+v", got, want)
	}

	b.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}
	b.Status.ContainerStatuses[0].RestartCount = 1
	b.Status.Conditions[1].LastTransitionTime = metav1.NewTime(time.Now().Add(-time.Minute))
	o.updateStatus(b)
	o.wantWrites("restarted", statusWriteOfShop)
	want = []v1alpha1.UnavailablePod{{Name: "shop-b", Reason: "CrashLoopBackOff", Message: "OOMKilled, exit code 137"}}
	if got := o.proxy("shop").Status.UnavailablePods; !slices.Equal(got, want) {
		t.Errorf("unavailablePods are %+v, want %+v", got, want)
	}

	a.Finalizers = []string{"test/stay"}
	if err := o.client.Update(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	o.deletePod(a)
	o.wantPods("shop", 0, "shop-a", "shop-b")
	if got := *o.proxy("shop").Status.Replicas; got != 1 {
		t.Errorf("replicas are %d, want 1: the terminating pod is left out", got)
	}
	o.wantWrites("terminating", statusWriteOfShop)

	o.patch(a, "test", `{"metadata":{"finalizers":null}}`)
	o.wantPods("shop", 0, "shop-b")
	o.wantWrites("gone", statusWriteOfShop)

	b.Status.Phase = corev1.PodFailed
	o.updateStatus(b)
	o.wantPods("shop", 0)
	o.wantWrites("finished", statusWriteOfShop)
}

func TestFromOnePodToZeroAndBackWritesExactlyTheChanges(t *testing.T) {
	o := newCluster(t).startOperator()
	o.apply("shop", "replicas: 1")
	set := o.replicaSet(o.deployment("shop"), 1)
	pod := o.readyPod(set, "shop-1")
	o.wantPods("shop", 1, "shop-1")
	o.settle()
	o.takeWrites()
	changes := o.statusChanges("shop")

	o.deletePod(pod)
	o.wantPods("shop", 0)
	o.settle()
	before := len(o.writes())
	o.patch(o.deployment("shop"), "test", `{"metadata":{"annotations":{"a":"b"}}}`)
	o.patch(o.proxy("shop"), "test", `{"metadata":{"labels":{"a":"b"}}}`)
	o.settle()
	if got := o.writes()[before:]; len(got) > 0 {
		t.Errorf("0 to 0: it wrote %q", got)
	}
	o.readyPod(set, "shop-2")
	o.wantPods("shop", 1, "shop-2")
	o.settle()
	if writes, seen := o.takeWrites(), changes(); len(writes) != seen || seen < 2 {
		t.Errorf("it wrote %q, and the status changed %d times", writes, seen)
	}
}

// statusChanges counts, from now on, the changes of a MyProxy's status as a watch tells them.
func (c *cluster) statusChanges(name string) (count func() int) {
	c.t.Helper()
	last := c.proxy(name)
	watching, err := client.NewWithWatch(serverConfig, client.Options{Scheme: scheme})
	if err != nil {
		c.t.Fatal(err)
	}
	events, err := watching.Watch(c.t.Context(), &v1alpha1.MyProxyList{}, client.InNamespace(c.namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: last.ResourceVersion}})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(events.Stop)
	content, changes := contentOf(last.Status), 0
	return func() int {
		c.t.Helper()
		for until := c.proxy(name).ResourceVersion; last.ResourceVersion != until; {
			last = (<-events.ResultChan()).Object.(*v1alpha1.MyProxy)
			if now := contentOf(last.Status); now != content {
				content, changes = now, changes+1
			}
		}
		return changes
	}
}

func TestAConvergedFleetIsNotWrittenTo(t *testing.T) {
	o := newCluster(t).startOperator()
	o.apply("shop", "replicas: 1")
	o.readyPod(o.replicaSet(o.deployment("shop"), 1), "shop-1")
	o.wantCondition("shop", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonServing)
	o.settle()
	o.takeWrites()
	for i := range 20 {
		o.patch(o.proxy("shop"), "test", fmt.Sprintf(`{"metadata":{"labels":{"touched":"%d"}}}`, i))
		o.patch(o.deployment("shop"), "test", fmt.Sprintf(`{"metadata":{"annotations":{"touched":"%d"}}}`, i))
	}
	deployment := o.deployment("shop")
	for i := range 3 {
		deployment.Status.Replicas, deployment.Status.UnavailableReplicas = 1, int32(i)
		o.updateStatus(deployment)
	}
	o.cut("") // each watch lists anew
	o.wantWrites("labels and annotations of others, the Deployment's counts, watches that are cut")
}

func TestAChangedImageIsNotReadyBeforeNewPodsServe(t *testing.T) {
	o := newCluster(t).startOperator()
	o.apply("shop", "replicas: 1")
	old := o.readyPod(o.replicaSet(o.deployment("shop"), 1), "shop-1")
	o.wantCondition("shop", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonServing)

	proxy := o.apply("shop", "{replicas: 1, image: nginx:other}")
	o.eventually("the new generation is observed", func() error {
		if got := o.proxy("shop").Status.ObservedGeneration; got == nil || *got != proxy.Generation {
			return fmt.Errorf("observed %v of %d", got, proxy.Generation)
		}
		return nil
	})
	status := o.proxy("shop").Status
	if got, want := summary(status), "Ready=False/RollingOut Accepted=True/Accepted ConfigValid=True/Served Available=True/Serving Progressing=True/RollingOut"; got != want {
		t.Errorf("the first status of the new generation is %s, want %s", got, want)
	}
	if *status.UpdatedReplicas != 0 {
		t.Errorf("updatedReplicas are %d, want 0", *status.UpdatedReplicas)
	}
	o.readyPod(o.replicaSet(o.deployment("shop"), 2), "shop-2")
	o.wantCondition("shop", v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonRollingOut)
	o.deletePod(old)
	o.wantCondition("shop", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonServing)
}

// summary is the conditions in a line.
func summary(status v1alpha1.MyProxyStatus) string {
	var all []string
	for _, c := range status.Conditions {
		all = append(all, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
	}
	return strings.Join(all, " ")
}

func TestLastTransitionTimeStaysWhileTheStatusStays(t *testing.T) {
	clock := testclock.NewFakeClock(time.Now().Truncate(time.Second))
	c := newCluster(t)
	o := c.startOperatorWith(newWire(), clock)
	o.apply("shop", "replicas: 1")
	set := o.replicaSet(o.deployment("shop"), 1)
	o.readyPod(set, "shop-1")
	first := o.wantCondition("shop", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonServing).LastTransitionTime
	o.settle()

	clock.Step(-24 * time.Hour)
	o.apply("shop", "replicas: 2")
	unready := o.wantCondition("shop", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonRollingOut).LastTransitionTime
	if want := metav1.NewTime(clock.Now()); !unready.Equal(&want) {
		t.Errorf("Ready flipped at %s, want %s", unready, want)
	}
	accepted := o.wantCondition("shop", v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted)
	if !accepted.LastTransitionTime.Equal(&first) {
		t.Errorf("Accepted stayed True, but its lastTransitionTime moved from %s to %s", first, accepted.LastTransitionTime)
	}
	o.settle()
	o.stop()
	clock.Step(time.Hour)
	again := c.startOperatorWith(newWire(), clock)
	again.settle()
	if got := c.wantCondition("shop", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonRollingOut).LastTransitionTime; !got.Equal(&unready) {
		t.Errorf("a restart moved lastTransitionTime from %s to %s", unready, got)
	}
	if got, want := again.takeWrites(), 4; len(got) > want {
		t.Errorf("a restart sent %q, want one request for each child and the status", got)
	}
}

func TestEventsThatArriveDuringAWriteShareTheNextOne(t *testing.T) {
	o := newCluster(t).startOperator()
	o.apply("shop", "replicas: 5")
	set := o.replicaSet(o.deployment("shop"), 1)
	o.settle()
	o.takeWrites()
	release, held := make(chan struct{}), make(chan struct{}, 9)
	o.disturb(func(r request) *http.Response {
		if r.String() == statusWriteOfShop {
			held <- struct{}{}
			<-release
		}
		return nil
	})
	o.pod(set, "shop-1")
	<-held
	for i := 2; i <= 5; i++ {
		o.pod(set, fmt.Sprintf("shop-%d", i))
	}
	o.eventually("the cache has all pods", func() error {
		var pods corev1.PodList
		if err := o.cache.List(t.Context(), &pods, client.InNamespace(o.namespace)); err != nil || len(pods.Items) != 5 {
			return fmt.Errorf("it has %d (%w)", len(pods.Items), err)
		}
		return nil
	})
	close(release)
	o.wantPods("shop", 0, "shop-1", "shop-2", "shop-3", "shop-4", "shop-5")
	o.wantWrites("five pods", statusWriteOfShop, statusWriteOfShop)
}
