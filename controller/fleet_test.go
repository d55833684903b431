package controller

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// What the Deployment controller and the kubelet would do, done by hand.

// deployment waits for the fleet's Deployment.
func (c *cluster) deployment(fleet string) *appsv1.Deployment {
	c.t.Helper()
	deployment := &appsv1.Deployment{}
	c.eventually("there is a Deployment "+fleet, func() error {
		return c.client.Get(c.t.Context(), client.ObjectKey{Namespace: c.namespace, Name: fleet}, deployment)
	})
	return deployment
}

// replicaSet makes the ReplicaSet of the Deployment's template as it is now, and notes that the Deployment was observed.
func (c *cluster) replicaSet(deployment *appsv1.Deployment, revision int) *appsv1.ReplicaSet {
	c.t.Helper()
	c.get(deployment.Name, deployment)
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.namespace, Name: fmt.Sprintf("%s-r%d", deployment.Name, revision),
			Labels:      deployment.Spec.Template.Labels,
			Annotations: map[string]string{annotationRevision: strconv.Itoa(revision)},
		},
		Spec: appsv1.ReplicaSetSpec{Selector: deployment.Spec.Selector, Template: deployment.Spec.Template},
	}
	c.create(set, deployment)
	c.patchStatus(deployment, "kube-controller-manager", fmt.Sprintf(`{"status":{"observedGeneration":%d}}`, deployment.Generation))
	return set
}

// pod makes a pod of a ReplicaSet, that no node has yet.
func (c *cluster) pod(set *appsv1.ReplicaSet, name string) *corev1.Pod {
	c.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name, Labels: set.Spec.Template.Labels},
		Spec:       set.Spec.Template.Spec,
	}
	c.create(pod, set)
	return pod
}

// readyPod makes a pod of a ReplicaSet that serves.
func (c *cluster) readyPod(set *appsv1.ReplicaSet, name string) *corev1.Pod {
	c.t.Helper()
	pod := c.pod(set, name)
	c.serve(pod)
	return pod
}

// serve makes a pod Ready.
func (c *cluster) serve(pod *corev1.Pod) {
	c.t.Helper()
	now := metav1.Now()
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning,
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now},
		},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: containerNginx, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		}},
	}
	c.updateStatus(pod)
}

// configTestFails is what the kubelet says of a pod whose configuration nginx refused for the n-th time.
func (c *cluster) configTestFails(pod *corev1.Pod, restarts int32, state corev1.ContainerState, said string) {
	c.t.Helper()
	ended := &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: said, FinishedAt: metav1.NewTime(time.Now())}
	status := corev1.ContainerStatus{Name: containerConfigTest, RestartCount: restarts, State: state}
	if state == (corev1.ContainerState{}) {
		status.State.Terminated = ended
	} else {
		status.LastTerminationState.Terminated = ended
	}
	pod.Status.Phase = corev1.PodPending
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{status}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: containerNginx, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}},
	}}
	c.updateStatus(pod)
}

// deletePod has the pod gone at once.
func (c *cluster) deletePod(pod *corev1.Pod) {
	c.t.Helper()
	if err := c.client.Delete(c.t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		c.t.Fatal(err)
	}
}

// create makes an object; owner, if not nil, is its controller.
func (c *cluster) create(object, owner client.Object) {
	c.t.Helper()
	if owner != nil {
		if err := controllerutil.SetControllerReference(owner, object, scheme); err != nil {
			c.t.Fatal(err)
		}
	}
	if err := c.client.Create(c.t.Context(), object); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) updateStatus(object client.Object) {
	c.t.Helper()
	if err := c.client.Status().Update(c.t.Context(), object); err != nil {
		c.t.Fatal(err)
	}
}

// wantPods waits until the status has exactly these pods, and that many of them Ready.
func (c *cluster) wantPods(proxy string, ready int32, names ...string) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("status of %s: %d ready of %q", proxy, ready, names), func() error {
		got := c.proxy(proxy)
		if !slices.Equal(got.Status.PodNames, names) || got.Status.ReadyReplicas == nil || *got.Status.ReadyReplicas != ready {
			return fmt.Errorf("it is %+v", got.Status)
		}
		return nil
	})
}

// wantCondition waits until a condition is as said, and returns it.
func (c *cluster) wantCondition(proxy, kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	c.t.Helper()
	var got metav1.Condition
	c.eventually(fmt.Sprintf("%s of %s is %s, %s", kind, proxy, status, reason), func() error {
		for _, got = range c.proxy(proxy).Status.Conditions {
			if got.Type == kind && got.Status == status && got.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("the conditions are %+v", c.proxy(proxy).Status.Conditions)
	})
	return got
}
