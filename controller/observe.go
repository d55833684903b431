package controller

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"myproxy.dev/operator/api/v1alpha1"
)

// observed is what is known of a fleet: the caches, and what the API server answered where that is newer.
type observed struct {
	deployment  *appsv1.Deployment // nil: not there
	service     *corev1.Service    // nil: not there
	configMaps  []*metav1.PartialObjectMetadata
	replicaSets []metav1.PartialObjectMetadata // of the fleet's label; whose they are is not said
	pods        []podState                     // of the fleet's label; whose they are is not said
	rival       *v1alpha1.MyProxy              // the MyProxy that has the fleet's name in this one's place; nil: none
	before      priorStatus
	lapseIn     time.Duration // after which to look again whether an answer is confirmed by a cache; zero: all are
}

// priorStatus is what the next status builds on.
type priorStatus struct {
	configHash string
	conditions []metav1.Condition
}

// child is the child of that name; nil, if it is not there.
func (seen *observed) child(id childID) metav1.Object {
	switch {
	case id.kind == kindDeployment && seen.deployment != nil:
		return seen.deployment
	case id.kind == kindService && seen.service != nil:
		return seen.service
	case id.kind == kindConfigMap:
		for _, configMap := range seen.configMaps {
			if configMap.Name == id.name {
				return configMap
			}
		}
	}
	return nil
}

// see notes what the API server answered. The slice is made anew: observed is copied by value.
func (seen *observed) see(answer metav1.Object) {
	switch answer := answer.(type) {
	case *appsv1.Deployment:
		seen.deployment = answer
	case *corev1.Service:
		seen.service = answer
	case *metav1.PartialObjectMetadata:
		configMaps := []*metav1.PartialObjectMetadata{answer}
		for _, configMap := range seen.configMaps {
			if configMap.Name != answer.Name {
				configMaps = append(configMaps, configMap)
			}
		}
		seen.configMaps = configMaps
	}
}

// observe reads the caches, and nothing else. What it returns must not be changed: it is the caches' own.
func (r *Reconciler) observe(ctx context.Context, proxy *v1alpha1.MyProxy, memory *fleetMemory) (observed, error) {
	var seen observed
	fleet := fleetOf(proxy)
	key := types.NamespacedName{Namespace: proxy.Namespace, Name: fleet}
	var err error
	if seen.deployment, err = getOrNil(ctx, r.client, key, &appsv1.Deployment{}); err != nil {
		return seen, fmt.Errorf("observe the Deployment: %w", err)
	}
	if seen.service, err = getOrNil(ctx, r.client, key, &corev1.Service{}); err != nil {
		return seen, fmt.Errorf("observe the Service: %w", err)
	}
	ofFleet := []client.ListOption{
		client.InNamespace(proxy.Namespace), client.MatchingFields{fleetIndex: fleet}, client.UnsafeDisableDeepCopy,
	}
	configMaps, replicaSets := metadataList(kindConfigMap), metadataList(kindReplicaSet)
	var pods corev1.PodList
	var claims v1alpha1.MyProxyList
	for _, list := range []client.ObjectList{configMaps, replicaSets, &pods, &claims} {
		if err := r.client.List(ctx, list, ofFleet...); err != nil {
			return seen, fmt.Errorf("observe the fleet's %T: %w", list, err)
		}
	}
	for i := range configMaps.Items {
		seen.configMaps = append(seen.configMaps, &configMaps.Items[i])
	}
	seen.replicaSets = replicaSets.Items
	for i := range pods.Items {
		seen.pods = append(seen.pods, stateOf(&pods.Items[i]))
	}
	seen.remember(proxy, memory, r.clock.Now())
	seen.rival = rival(proxy, claims.Items, seen.deployment)
	return seen, nil
}

// remember puts the API server's answers in the place of what is older in the caches.
func (seen *observed) remember(proxy *v1alpha1.MyProxy, memory *fleetMemory, now time.Time) {
	answers, lapseIn := memory.answers(seen.child, now)
	for _, answer := range answers {
		seen.see(answer)
	}
	seen.lapseIn = lapseIn
	seen.before = priorStatus{configHash: proxy.Status.ConfigHash, conditions: proxy.Status.Conditions}
	if last := memory.status; last.conditions != nil {
		seen.before = priorStatus{configHash: last.configHash, conditions: last.conditions}
	}
}

func getOrNil[T client.Object](ctx context.Context, reader client.Reader, key types.NamespacedName, object T) (T, error) {
	err := reader.Get(ctx, key, object, client.UnsafeDisableDeepCopy)
	if err != nil {
		var none T
		return none, client.IgnoreNotFound(err)
	}
	return object, nil
}
