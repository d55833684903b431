package controller

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"myproxy.dev/operator/api/v1alpha1"
)

// view is what the conditions are judged by.
type view struct {
	proxy    *v1alpha1.MyProxy
	seen     observed
	want     desired
	fleet    membership
	failures []*failure
}

func (v view) terminating() bool { return v.proxy.DeletionTimestamp != nil }

func (v view) paused() bool { return isPaused(v.proxy) }

// complete tells whether the pods are the wanted ones, and serve. It reads neither the Deployment's status nor its revision:
// right after an apply both still describe the template before.
func (v view) complete() bool {
	wanted := int(v.want.replicas)
	return len(v.fleet.pods) == wanted && len(v.fleet.updated) == wanted && int(countReady(v.fleet.updated)) == wanted
}

// asWanted tells whether the Deployment is as the spec says.
func (v view) asWanted() bool {
	live := v.seen.deployment
	return live != nil && metav1.IsControlledBy(live, v.proxy) && live.Spec.Replicas != nil &&
		*live.Spec.Replicas == v.want.replicas && live.Spec.Template.Labels[labelTemplate] == v.want.templateHash
}

// unavailable are the pods that do not serve, for a reason that somebody may want to know. One whose containers are not
// started yet is none before the deadline has passed.
func (v view) unavailable() []podState {
	late := v.pastDeadline()
	var all []podState
	for _, pod := range v.fleet.pods {
		if !pod.ready && (late || pod.running || !pod.starting) {
			all = append(all, pod)
		}
	}
	return all
}

// broken is the first of them with which something is wrong: it does not merely start. Nil, if there is none.
func (v view) broken() *podState {
	for _, pod := range v.unavailable() {
		if !pod.starting || v.pastDeadline() {
			return &pod
		}
	}
	return nil
}

// replicaFailure is why the ReplicaSet controller can't create pods, in its own words; empty, if it can.
func (v view) replicaFailure() string {
	failure := v.deploymentCondition(appsv1.DeploymentReplicaFailure)
	if failure.Status != corev1.ConditionTrue {
		return ""
	}
	return stable(cmp.Or(failure.Message, failure.Reason))
}

// pastDeadline tells whether the rollout's deadline has passed.
func (v view) pastDeadline() bool {
	progressing := v.deploymentCondition(appsv1.DeploymentProgressing)
	return progressing.Status == corev1.ConditionFalse && progressing.Reason == "ProgressDeadlineExceeded"
}

// deploymentCondition is what the Deployment controller says of the Deployment as it is now; else nothing.
func (v view) deploymentCondition(kind appsv1.DeploymentConditionType) appsv1.DeploymentCondition {
	live := v.seen.deployment
	if live == nil || !metav1.IsControlledBy(live, v.proxy) || live.Status.ObservedGeneration < live.Generation {
		return appsv1.DeploymentCondition{}
	}
	for _, condition := range live.Status.Conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return appsv1.DeploymentCondition{}
}
