package controller

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"myproxy.dev/operator/api/v1alpha1"
	gatewayac "myproxy.dev/operator/applyconfigurations/api/v1alpha1"
)

// world is a fleet `shop` of a MyProxy that wants three pods, as an operator could see it.
type world struct {
	proxy    *v1alpha1.MyProxy
	seen     observed
	want     desired
	failures []*failure
}

var epoch = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

func newWorld(change ...func(*world)) *world {
	proxy := &v1alpha1.MyProxy{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "ns", UID: "proxy", Generation: 7}}
	proxy.Spec.Replicas = new(int32(3))
	w := &world{proxy: proxy, want: desire(proxy, testImage)}
	w.seen.deployment = &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "deployment", Generation: 2, OwnerReferences: controlledBy("proxy")}}
	w.seen.deployment.Status.ObservedGeneration = 2
	w.seen.deployment.Spec.Replicas = new(int32(3))
	w.seen.deployment.Spec.Template.Labels = map[string]string{labelTemplate: w.want.templateHash}
	w.seen.replicaSets = []metav1.PartialObjectMetadata{replicaSetMeta("old", 1, "old-template"), replicaSetMeta("new", 2, w.want.templateHash)}
	for _, c := range change {
		c(w)
	}
	return w
}

func controlledBy(uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{UID: uid, Controller: new(true)}}
}

func replicaSetMeta(uid types.UID, revision int, template string) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		UID: uid, OwnerReferences: controlledBy("deployment"), Labels: map[string]string{labelTemplate: template},
		Annotations: map[string]string{annotationRevision: strconv.Itoa(revision)},
	}}
}

// pods adds pods of a ReplicaSet: "old", of another configuration, or "new".
func pods(n int, set types.UID, state podState) func(*world) {
	return func(w *world) {
		for range n {
			pod := state
			pod.name, pod.replicaSet = fmt.Sprintf("shop-%s-%d", set, len(w.seen.pods)), set
			if pod.template, pod.config = "old-template", "old-config"; set == "new" {
				pod.template, pod.config = w.want.templateHash, w.want.configHash
			}
			w.seen.pods = append(w.seen.pods, pod)
		}
	}
}

func deploymentSays(kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string) func(*world) {
	return func(w *world) {
		w.seen.deployment.Status.Conditions = append(w.seen.deployment.Status.Conditions,
			appsv1.DeploymentCondition{Type: kind, Status: status, Reason: reason, Message: message})
	}
}

func wanting(replicas int32) func(*world) { return func(w *world) { w.want.replicas = replicas } }

func prior(configHash, kind string, status metav1.ConditionStatus, reason string) func(*world) {
	return func(w *world) {
		w.seen.before.configHash = strings.ReplaceAll(configHash, "wanted", w.want.configHash)
		w.seen.before.conditions = append(w.seen.before.conditions, metav1.Condition{Type: kind, Status: status, Reason: reason})
	}
}

func failing(f *failure) func(*world) { return func(w *world) { w.failures = append(w.failures, f) } }

var (
	serves    = podState{ready: true, running: true}
	starts    = podState{starting: true, reason: "Pending"}
	cantStart = podState{reason: "ImagePullBackOff", message: "no such host"}
	isRefused = podState{reason: reasonCrashLoopBackOff, message: "unknown directive", refusal: "unknown directive"}
	late      = deploymentSays(appsv1.DeploymentProgressing, corev1.ConditionFalse, "ProgressDeadlineExceeded", "")
)

func (w *world) status() *gatewayac.MyProxyStatusApplyConfiguration {
	return status(w.proxy, w.seen, w.want, w.failures, epoch)
}

func conditionsOf(status *gatewayac.MyProxyStatusApplyConfiguration) string {
	var all []string
	for _, c := range status.Conditions {
		all = append(all, fmt.Sprintf("%s=%s/%s", *c.Type, *c.Status, *c.Reason))
	}
	return strings.Join(all, " ")
}

// Each row of the design's table of states, and what it leaves open.
func TestTheTableOfStates(t *testing.T) {
	paused := func(w *world) { w.proxy.Spec.Paused = new(true) }
	for name, tc := range map[string]struct {
		world *world
		want  string
	}{
		"new": {
			newWorld(func(w *world) { w.seen.replicaSets = nil }),
			"Ready=False/RollingOut Accepted=True/Accepted ConfigValid=Unknown/Pending Available=False/NoPods Progressing=True/RollingOut",
		},
		"rolling": {
			newWorld(pods(3, "old", serves), pods(1, "new", starts)),
			"Ready=False/RollingOut Accepted=True/Accepted ConfigValid=Unknown/Pending Available=True/Serving Progressing=True/RollingOut",
		},
		"rolling, and a pod of the new configuration serves": {
			newWorld(pods(2, "old", serves), pods(1, "new", serves)),
			"Ready=False/RollingOut Accepted=True/Accepted ConfigValid=True/Served Available=True/Serving Progressing=True/RollingOut",
		},
		"complete": {
			newWorld(pods(3, "new", serves)),
			"Ready=True/Serving Accepted=True/Accepted ConfigValid=True/Served Available=True/Serving Progressing=False/Complete",
		},
		"nginx refuses the new configuration, old pods serve": {
			newWorld(pods(3, "old", serves), pods(1, "new", isRefused)),
			"Ready=False/ConfigRefused Accepted=True/Accepted ConfigValid=False/Refused Available=True/Serving Progressing=True/RollingOut Stalled=True/ConfigRefused",
		},
		"nginx refuses the new configuration, after the deadline": {
			newWorld(pods(3, "old", serves), pods(1, "new", isRefused), late),
			"Ready=False/ConfigRefused Accepted=True/Accepted ConfigValid=False/Refused Available=True/Serving Progressing=False/Stalled Stalled=True/ConfigRefused",
		},
		"scaled to zero": {
			newWorld(wanting(0), prior("wanted", v1alpha1.ConditionConfigValid, metav1.ConditionTrue, v1alpha1.ReasonServed)),
			"Ready=True/ScaledToZero Accepted=True/Accepted ConfigValid=True/Served Available=False/ScaledToZero Progressing=False/Complete",
		},
		"scaled to zero, of another configuration": {
			newWorld(wanting(0), prior("another", v1alpha1.ConditionConfigValid, metav1.ConditionTrue, v1alpha1.ReasonServed)),
			"Ready=True/ScaledToZero Accepted=True/Accepted ConfigValid=Unknown/Pending Available=False/ScaledToZero Progressing=False/Complete",
		},
		"paused, and as the spec says": {
			newWorld(pods(3, "new", serves), paused),
			"Ready=True/Serving Accepted=True/Accepted ConfigValid=True/Served Available=True/Serving Progressing=False/Paused",
		},
		"paused, and the spec differs": {
			newWorld(pods(3, "new", serves), paused, wanting(5)),
			"Ready=False/Paused Accepted=True/Accepted ConfigValid=True/Served Available=True/Serving Progressing=False/Paused",
		},
		"name conflict": {
			newWorld(func(w *world) { w.seen.deployment = nil }, failing(nameConflict(childID{kindService, "shop"}, "taken"))),
			"Ready=False/NameConflict Accepted=False/NameConflict ConfigValid=Unknown/Pending Available=False/NoPods Progressing=False/Blocked Stalled=True/NameConflict",
		},
		"refused child": {
			newWorld(pods(3, "old", serves), failing(&failure{child: childID{kindDeployment, "shop"}, reason: v1alpha1.ReasonRefused, message: "no"})),
			"Ready=False/Refused Accepted=False/Refused ConfigValid=Unknown/Pending Available=True/Serving Progressing=False/Blocked Stalled=True/Refused",
		},
		"a refusal is told before a failure": {
			newWorld(pods(3, "new", serves), failing(&failure{reason: v1alpha1.ReasonApplyFailed}), failing(&failure{reason: v1alpha1.ReasonRefused})),
			"Ready=False/Refused Accepted=False/Refused ConfigValid=True/Served Available=True/Serving Progressing=False/Blocked Stalled=True/Refused",
		},
		"the API server does not answer": {
			newWorld(pods(3, "new", serves), failing(&failure{reason: v1alpha1.ReasonApplyFailed, message: "later"})),
			"Ready=False/ApplyFailed Accepted=Unknown/ApplyFailed ConfigValid=True/Served Available=True/Serving Progressing=True/RollingOut",
		},
		"a lost race is not told": {
			newWorld(pods(3, "new", serves), failing(&failure{retryIn: raceRetry})),
			"Ready=True/Serving Accepted=True/Accepted ConfigValid=True/Served Available=True/Serving Progressing=False/Complete",
		},
		"pods are refused": {
			newWorld(pods(2, "new", serves), deploymentSays(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "FailedCreate", "quota")),
			"Ready=False/ReplicaFailure Accepted=True/Accepted ConfigValid=True/Served Available=True/Serving Progressing=True/ReplicaFailure",
		},
		"what the Deployment controller says of an earlier spec does not count": {
			newWorld(pods(2, "new", serves), late, func(w *world) { w.seen.deployment.Generation = 3 }),
			"Ready=False/RollingOut Accepted=True/Accepted ConfigValid=True/Served Available=True/Serving Progressing=True/RollingOut",
		},
		"a new pod can't start": {
			newWorld(pods(3, "old", serves), pods(1, "new", cantStart)),
			"Ready=False/PodsUnavailable Accepted=True/Accepted ConfigValid=Unknown/Pending Available=True/Serving Progressing=True/RollingOut",
		},
		"a new pod can't start, after the deadline": {
			newWorld(pods(3, "old", serves), pods(1, "new", cantStart), late),
			"Ready=False/PodsUnavailable Accepted=True/Accepted ConfigValid=Unknown/Pending Available=True/Serving Progressing=False/Stalled Stalled=True/PodsUnavailable",
		},
		"a pod starts for ever": {
			newWorld(pods(2, "new", serves), pods(1, "new", starts), late),
			"Ready=False/PodsUnavailable Accepted=True/Accepted ConfigValid=True/Served Available=True/Serving Progressing=False/Stalled Stalled=True/PodsUnavailable",
		},
		"no pod serves": {
			newWorld(pods(3, "new", cantStart)),
			"Ready=False/PodsUnavailable Accepted=True/Accepted ConfigValid=Unknown/Pending Available=False/PodsUnavailable Progressing=True/RollingOut",
		},
		"deleting": {
			newWorld(pods(3, "new", serves), func(w *world) { w.proxy.DeletionTimestamp = new(metav1.NewTime(epoch)) },
				prior("wanted", v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted)),
			"Ready=False/Terminating Accepted=True/Accepted ConfigValid=True/Served Available=True/Serving Progressing=False/Terminating",
		},
	} {
		if got := conditionsOf(tc.world.status()); got != tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, tc.want)
		}
	}
}

func TestUpdatedArePodsOfTheNewestReplicaSetOfTheWantedTemplate(t *testing.T) {
	w := newWorld(pods(2, "new", serves), pods(1, "restarted", serves))
	w.seen.replicaSets = append(w.seen.replicaSets, replicaSetMeta("restarted", 3, w.want.templateHash)) // `kubectl rollout restart`
	w.seen.pods[2].template = w.want.templateHash
	if got := *w.status().UpdatedReplicas; got != 1 {
		t.Errorf("updatedReplicas are %d, want the 1 of the newest ReplicaSet", got)
	}
}

func TestUnavailablePodsAreTheFirstTenByName(t *testing.T) {
	w := newWorld(pods(12, "new", cantStart))
	slices.Reverse(w.seen.pods)
	var names []string
	for _, pod := range w.status().UnavailablePods {
		names = append(names, *pod.Name)
	}
	if len(names) != 10 || !slices.IsSorted(names) {
		t.Errorf("they are %q", names)
	}
}
