package controller

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"myproxy.dev/operator/api/v1alpha1"
)

// conditionTypes are ours, in the order in which they are written. A condition of another type is somebody else's.
var conditionTypes = []string{
	v1alpha1.ConditionReady, v1alpha1.ConditionAccepted, v1alpha1.ConditionConfigValid,
	v1alpha1.ConditionAvailable, v1alpha1.ConditionProgressing, v1alpha1.ConditionStalled,
}

// conditions are all of ours, in their order. lastTransitionTime is that of the prior one where its status is the same.
func (v view) conditions(now time.Time) []metav1.Condition {
	judged := map[string]metav1.Condition{
		v1alpha1.ConditionAccepted:    v.accepted(),
		v1alpha1.ConditionConfigValid: v.configValid(),
		v1alpha1.ConditionAvailable:   v.available(),
		v1alpha1.ConditionProgressing: v.progressing(),
	}
	ready := v.ready(judged)
	judged[v1alpha1.ConditionReady] = ready
	if v.isStalled(judged) {
		judged[v1alpha1.ConditionStalled] = is(metav1.ConditionTrue, ready.Reason, ready.Message)
	}
	var all []metav1.Condition
	for _, kind := range conditionTypes {
		condition, found := judged[kind]
		if !found || condition.Status == "" {
			continue
		}
		condition.Type, condition.ObservedGeneration = kind, v.proxy.Generation
		condition.LastTransitionTime = metav1.NewTime(now)
		if prior := meta.FindStatusCondition(v.seen.before.conditions, kind); prior != nil {
			all = append(all, *prior)
		}
		meta.SetStatusCondition(&all, condition)
	}
	return all
}

func is(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Status: status, Reason: reason, Message: message}
}

// accepted is decided by the first child that could not be had, a refusal before a failure.
func (v view) accepted() metav1.Condition {
	if v.terminating() { // no child is touched any more: there is nothing new to say
		return v.prior(v1alpha1.ConditionAccepted)
	}
	var failed *failure
	for _, f := range v.failures {
		if f.reason == v1alpha1.ReasonRefused || f.reason == v1alpha1.ReasonNameConflict {
			return is(metav1.ConditionFalse, f.reason, f.message)
		}
		if failed == nil && f.reason != "" {
			failed = f
		}
	}
	if failed != nil {
		return is(metav1.ConditionUnknown, failed.reason, failed.message)
	}
	return is(metav1.ConditionTrue, v1alpha1.ReasonAccepted, "every object of the fleet is accepted")
}

// configValid is the verdict on the configuration that is wanted. It keeps until the hash changes or a pod says otherwise; a pod
// that is refused says more than one that serves: its nginx may be another.
func (v view) configValid() metav1.Condition {
	served := false
	for _, pod := range v.fleet.pods {
		if pod.config != v.want.configHash {
			continue
		}
		if pod.refusal != "" {
			return is(metav1.ConditionFalse, v1alpha1.ReasonRefused, pod.refusal)
		}
		served = served || pod.ready
	}
	prior := v.prior(v1alpha1.ConditionConfigValid)
	switch {
	case served:
		return is(metav1.ConditionTrue, v1alpha1.ReasonServed, "nginx serves this configuration")
	case v.seen.before.configHash == v.want.configHash && prior.Status != "" && prior.Status != metav1.ConditionUnknown:
		return prior
	default:
		return is(metav1.ConditionUnknown, v1alpha1.ReasonPending, "no pod has tried this configuration yet")
	}
}

func (v view) available() metav1.Condition {
	ready := countReady(v.fleet.pods)
	switch {
	case ready > 0:
		return is(metav1.ConditionTrue, v1alpha1.ReasonServing, fmt.Sprintf("%d of %d pods serve", ready, len(v.fleet.pods)))
	case len(v.fleet.pods) > 0:
		return is(metav1.ConditionFalse, v1alpha1.ReasonPodsUnavailable, fmt.Sprintf("none of %d pods serves", len(v.fleet.pods)))
	case v.want.replicas == 0:
		return is(metav1.ConditionFalse, v1alpha1.ReasonScaledToZero, "no pod is wanted")
	default:
		return is(metav1.ConditionFalse, v1alpha1.ReasonNoPods, "there is no pod")
	}
}

// progressing is decided by the first that holds; the deadline is the Deployment controller's to judge.
func (v view) progressing() metav1.Condition {
	accepted := v.accepted()
	switch refused := v.replicaFailure(); {
	case v.terminating():
		return is(metav1.ConditionFalse, v1alpha1.ReasonTerminating, "the MyProxy is being deleted")
	case accepted.Status == metav1.ConditionFalse:
		return is(metav1.ConditionFalse, v1alpha1.ReasonBlocked, accepted.Message)
	case v.paused():
		return is(metav1.ConditionFalse, v1alpha1.ReasonPaused, "spec.paused is true")
	case refused != "":
		return is(metav1.ConditionTrue, v1alpha1.ReasonReplicaFailure, refused)
	case v.complete() && accepted.Status == metav1.ConditionTrue:
		return is(metav1.ConditionFalse, v1alpha1.ReasonComplete, "the pods are as wanted")
	case v.pastDeadline():
		return is(metav1.ConditionFalse, v1alpha1.ReasonStalled, "no new pod served before the deadline; "+v.progress())
	default:
		return is(metav1.ConditionTrue, v1alpha1.ReasonRollingOut, v.progress())
	}
}

// ready is decided by the first that fails.
func (v view) ready(judged map[string]metav1.Condition) metav1.Condition {
	accepted, valid := judged[v1alpha1.ConditionAccepted], judged[v1alpha1.ConditionConfigValid]
	refused, broken := v.replicaFailure(), v.broken()
	switch {
	case v.terminating():
		return is(metav1.ConditionFalse, v1alpha1.ReasonTerminating, "the MyProxy is being deleted")
	case accepted.Status != metav1.ConditionTrue:
		return is(metav1.ConditionFalse, accepted.Reason, accepted.Message)
	case valid.Status == metav1.ConditionFalse:
		return is(metav1.ConditionFalse, v1alpha1.ReasonConfigRefused, valid.Message)
	case v.paused() && !v.asWanted():
		return is(metav1.ConditionFalse, v1alpha1.ReasonPaused, "spec.paused is true, and the fleet is not as the spec says")
	case refused != "":
		return is(metav1.ConditionFalse, v1alpha1.ReasonReplicaFailure, refused)
	case broken != nil:
		return is(metav1.ConditionFalse, v1alpha1.ReasonPodsUnavailable, broken.name+": "+broken.reason+suffix(broken.message))
	case !v.complete():
		return is(metav1.ConditionFalse, v1alpha1.ReasonRollingOut, v.progress())
	case v.want.replicas == 0:
		return is(metav1.ConditionTrue, v1alpha1.ReasonScaledToZero, "no pod is wanted, and none is there")
	default:
		return is(metav1.ConditionTrue, v1alpha1.ReasonServing, fmt.Sprintf("all %d pods serve", v.want.replicas))
	}
}

// isStalled tells whether nothing gets better without somebody's help.
func (v view) isStalled(judged map[string]metav1.Condition) bool {
	return !v.terminating() && (judged[v1alpha1.ConditionAccepted].Status == metav1.ConditionFalse ||
		judged[v1alpha1.ConditionConfigValid].Status == metav1.ConditionFalse ||
		judged[v1alpha1.ConditionProgressing].Reason == v1alpha1.ReasonStalled)
}

func (v view) progress() string {
	return fmt.Sprintf("%d pods wanted: %d there, %d of them updated, %d of those serve",
		v.want.replicas, len(v.fleet.pods), len(v.fleet.updated), countReady(v.fleet.updated))
}

func (v view) prior(kind string) metav1.Condition {
	if condition := meta.FindStatusCondition(v.seen.before.conditions, kind); condition != nil {
		return is(condition.Status, condition.Reason, condition.Message)
	}
	return metav1.Condition{}
}

func suffix(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}
