package controller

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// The transforms strip what enters a cache to what is read here, for a fleet may have ten thousand pods.

// stripMeta strips an object's metadata, and nothing else. (The signature is that of a cache's transform; it never fails.)
func stripMeta(object any) (any, error) {
	if meta, ok := object.(metav1.Object); ok {
		meta.SetManagedFields(nil)
		if annotations := meta.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
			delete(annotations, corev1.LastAppliedConfigAnnotation)
		}
	}
	return object, nil
}

// stripReplicaSet leaves its name, its owners, our labels and its revision.
func stripReplicaSet(object any) (any, error) {
	set, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	stripped := &metav1.PartialObjectMetadata{TypeMeta: set.TypeMeta, ObjectMeta: identity(set)}
	stripped.Annotations = map[string]string{annotationRevision: set.Annotations[annotationRevision]}
	return stripped, nil
}

// stripPod leaves what stateOf reads.
func stripPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	stripped := &corev1.Pod{ObjectMeta: identity(pod)}
	stripped.Status.Phase = pod.Status.Phase
	stripped.Status.Reason, stripped.Status.Message = pod.Status.Reason, pod.Status.Message
	for _, kind := range []corev1.PodConditionType{corev1.PodReady, corev1.PodScheduled} {
		if condition := podCondition(pod, kind); condition.Status != "" {
			stripped.Status.Conditions = append(stripped.Status.Conditions, condition)
		}
	}
	if podCondition(pod, corev1.PodReady).Status == corev1.ConditionTrue {
		return stripped, nil // nothing more is read of a pod that serves, and most do
	}
	stripped.Status.InitContainerStatuses = stripContainers(pod.Status.InitContainerStatuses)
	stripped.Status.ContainerStatuses = stripContainers(pod.Status.ContainerStatuses)
	return stripped, nil
}

func stripContainers(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var stripped []corev1.ContainerStatus
	for _, status := range statuses {
		stripped = append(stripped, corev1.ContainerStatus{
			Name: status.Name, Ready: status.Ready, State: status.State, LastTerminationState: status.LastTerminationState,
		})
	}
	return stripped
}

// stripDeployment leaves its metadata, its size, the labels of its template, what its controller says of it, and the hash of
// its spec, for its generation moves with its annotations too, its controller's own among them.
func stripDeployment(object any) (any, error) {
	deployment, ok := object.(*appsv1.Deployment)
	if !ok {
		return object, nil
	}
	stripped := &appsv1.Deployment{ObjectMeta: deployment.ObjectMeta}
	stripped.ManagedFields = nil
	stripped.Annotations = map[string]string{annotationSpec: hash(encode(deployment.Spec))} // the intent sets none
	stripped.Spec.Replicas = deployment.Spec.Replicas
	stripped.Spec.Template.Labels = deployment.Spec.Template.Labels
	stripped.Status.ObservedGeneration = deployment.Status.ObservedGeneration
	for _, condition := range deployment.Status.Conditions {
		stripped.Status.Conditions = append(stripped.Status.Conditions, appsv1.DeploymentCondition{ // its times change by themselves
			Type: condition.Type, Status: condition.Status, Reason: condition.Reason, Message: condition.Message,
		})
	}
	return stripped, nil
}

// identity is the metadata by which an object finds its owner.
func identity(object metav1.Object) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{
		Name: object.GetName(), Namespace: object.GetNamespace(), UID: object.GetUID(),
		ResourceVersion: object.GetResourceVersion(), DeletionTimestamp: object.GetDeletionTimestamp(),
		Labels: map[string]string{},
	}
	for _, key := range []string{labelFleet, labelConfig, labelTemplate} {
		if value, found := object.GetLabels()[key]; found {
			meta.Labels[key] = value
		}
	}
	if controller := metav1.GetControllerOfNoCopy(object); controller != nil {
		meta.OwnerReferences = []metav1.OwnerReference{{UID: controller.UID, Controller: controller.Controller}}
	}
	return meta
}

// strippedAnswer is what the API server answered to the apply of a child, in the form in which the cache has it.
func strippedAnswer(answer *unstructured.Unstructured) (metav1.Object, error) {
	var object metav1.Object
	strip := stripMeta
	switch kind := answer.GroupVersionKind(); kind {
	case kindDeployment:
		object, strip = &appsv1.Deployment{}, stripDeployment
	case kindService:
		object = &corev1.Service{}
	default:
		object = &metav1.PartialObjectMetadata{}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, object); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	stripped, _ := strip(object) // the transforms never fail
	return stripped.(metav1.Object), nil
}
