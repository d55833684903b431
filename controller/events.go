package controller

import (
	"bytes"
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"myproxy.dev/operator/api/v1alpha1"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=list;watch

const (
	// fleetIndex finds MyProxies by their fleet's name, and all else by the label that says it.
	fleetIndex = "fleet"
	// workers is how many MyProxies are reconciled at once: a pass is mostly waiting for the API server.
	workerCount = 8
	// passTimeout ends a pass that hangs.
	passTimeout = 30 * time.Second
	// A pass that fails is tried again after minBackoff, and then after twice as long each time, up to maxBackoff.
	minBackoff = 5 * time.Millisecond
	maxBackoff = 30 * time.Second
)

// CachedObjects are what the caches hold: all MyProxies, and of the children and the pods only those that bear the fleet label, stripped to
// what is read.
func CachedObjects() map[client.Object]cache.ByObject {
	labelled, err := labels.NewRequirement(labelFleet, selection.Exists, nil)
	if err != nil {
		panic(err) // the label is a constant
	}
	fleets := labels.NewSelector().Add(*labelled)
	return map[client.Object]cache.ByObject{
		&v1alpha1.MyProxy{}:  {Transform: stripMeta},
		&corev1.Pod{}:        {Label: fleets, Transform: stripPod},
		&corev1.ConfigMap{}:  {Label: fleets, Transform: stripMeta},
		&corev1.Service{}:    {Label: fleets, Transform: stripMeta},
		&appsv1.Deployment{}: {Label: fleets, Transform: stripDeployment},
		&appsv1.ReplicaSet{}: {Label: fleets, Transform: stripReplicaSet},
	}
}

// SetupWithManager has the manager run the reconciler. It returns an error if the manager can't: one with a cache that has been started, for
// example.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	configMaps, replicaSets := metadataOf(kindConfigMap), metadataOf(kindReplicaSet)
	for _, object := range []client.Object{&v1alpha1.MyProxy{}, &corev1.Pod{}, configMaps, replicaSets} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, object, fleetIndex, fleetIndexOf); err != nil {
			return fmt.Errorf("index %T by fleet: %w", object, err)
		}
	}
	err := ctrl.NewControllerManagedBy(mgr).Named("myproxy").
		// Every change, of the status too: that somebody tampered with it must be noticed.
		Watches(&v1alpha1.MyProxy{}, proxyEvents{r}).
		// What the status is about.
		Watches(&corev1.Pod{}, fleetEvents{reconciler: r}, builder.WithPredicates(podChanged)).
		// What makes a pod one of the fleet: a pod that arrived before its ReplicaSet would be waited for in vain.
		Watches(replicaSets, fleetEvents{reconciler: r}, builder.OnlyMetadata, builder.WithPredicates(replicaSetChanged)).
		// Drift is put right, what is deleted comes back, and a rollout tells that it stalls or that pods are refused.
		Watches(&appsv1.Deployment{}, fleetEvents{r, kindDeployment}, builder.WithPredicates(deploymentChanged)).
		Watches(&corev1.Service{}, fleetEvents{r, kindService}).
		Watches(configMaps, fleetEvents{r, kindConfigMap}, builder.OnlyMetadata).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workerCount,
			ReconciliationTimeout:   passTimeout,
			EnableWarmup:            new(true), // who leads next has its caches filled
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minBackoff, maxBackoff),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up the controller: %w", err)
	}
	return nil
}

func fleetIndexOf(object client.Object) []string {
	if proxy, ok := object.(*v1alpha1.MyProxy); ok {
		return []string{fleetOf(proxy)}
	}
	return []string{object.GetLabels()[labelFleet]}
}

func metadataOf(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}

func metadataList(kind schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

// The predicates compare what is read of an object, by the functions that read it.
var (
	podChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return stateOf(e.ObjectOld.(*corev1.Pod)) != stateOf(e.ObjectNew.(*corev1.Pod))
	}}
	replicaSetChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return revisionOf(e.ObjectOld) != revisionOf(e.ObjectNew) || controllerUID(e.ObjectOld) != controllerUID(e.ObjectNew)
	}}
	deploymentChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !bytes.Equal(shown(e.ObjectOld.(*appsv1.Deployment)), shown(e.ObjectNew.(*appsv1.Deployment)))
	}}
)

// shown is what the transform left of a Deployment, but for its resourceVersion, which changes all the time.
func shown(deployment *appsv1.Deployment) []byte {
	read := *deployment
	read.ResourceVersion = ""
	return encode(read)
}

func controllerUID(object metav1.Object) types.UID {
	if controller := metav1.GetControllerOfNoCopy(object); controller != nil {
		return controller.UID
	}
	return ""
}

// queue is where the handlers put what is to be reconciled. They add with the default priority: initial-list items have a low
// one in controller-runtime's own handlers, and would wait for as long as pods are restless.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// proxyEvents wakes the MyProxy itself, and, when it goes, the others that claim its fleet's name.
type proxyEvents struct{ reconciler *Reconciler }

func (h proxyEvents) Create(_ context.Context, e event.CreateEvent, q queue) {
	q.Add(requestFor(e.Object))
}

func (h proxyEvents) Update(ctx context.Context, e event.UpdateEvent, q queue) {
	q.Add(requestFor(e.ObjectNew))
	if e.ObjectOld.GetDeletionTimestamp().Equal(e.ObjectNew.GetDeletionTimestamp()) {
		return
	}
	h.reconciler.wake(ctx, e.ObjectNew.GetNamespace(), fleetIndexOf(e.ObjectNew)[0], q)
}

func (h proxyEvents) Delete(ctx context.Context, e event.DeleteEvent, q queue) {
	q.Add(requestFor(e.Object))
	h.reconciler.wake(ctx, e.Object.GetNamespace(), fleetIndexOf(e.Object)[0], q)
}

func (proxyEvents) Generic(context.Context, event.GenericEvent, queue) {}

// fleetEvents wakes the MyProxies that claim the fleet of an object's label, and tells their memory that a child came or went.
type fleetEvents struct {
	reconciler *Reconciler
	child      schema.GroupVersionKind // empty: the object is no child
}

func (h fleetEvents) Create(ctx context.Context, e event.CreateEvent, q queue) {
	h.handle(ctx, e.Object, q, (*fleetMemory).comes)
}

func (h fleetEvents) Update(ctx context.Context, e event.UpdateEvent, q queue) {
	h.handle(ctx, e.ObjectNew, q, nil)
	if e.ObjectOld.GetLabels()[labelFleet] != e.ObjectNew.GetLabels()[labelFleet] {
		h.handle(ctx, e.ObjectOld, q, nil)
	}
}

func (h fleetEvents) Delete(ctx context.Context, e event.DeleteEvent, q queue) {
	h.handle(ctx, e.Object, q, (*fleetMemory).goes)
}

func (fleetEvents) Generic(context.Context, event.GenericEvent, queue) {}

func (h fleetEvents) handle(ctx context.Context, object client.Object, q queue, note func(*fleetMemory, childID, types.UID)) {
	r := h.reconciler
	for _, proxy := range r.claimants(ctx, object.GetNamespace(), object.GetLabels()[labelFleet]) {
		if note != nil && !h.child.Empty() {
			memory := r.memory.of(client.ObjectKeyFromObject(&proxy), proxy.UID)
			note(memory, childID{h.child, object.GetName()}, object.GetUID())
		}
		q.Add(requestFor(&proxy))
	}
}

// wake enqueues the MyProxies that claim a fleet's name.
func (r *Reconciler) wake(ctx context.Context, namespace, fleet string, q queue) {
	for _, proxy := range r.claimants(ctx, namespace, fleet) {
		q.Add(requestFor(&proxy))
	}
}

func (r *Reconciler) claimants(ctx context.Context, namespace, fleet string) []v1alpha1.MyProxy {
	var claims v1alpha1.MyProxyList
	err := r.client.List(ctx, &claims, client.InNamespace(namespace), client.MatchingFields{fleetIndex: fleet}, client.UnsafeDisableDeepCopy)
	if err != nil { // the cache answers, and does so but while the operator stops
		log.FromContext(ctx).Error(err, "find the MyProxies of a fleet", "namespace", namespace, "fleet", fleet)
	}
	return claims.Items
}

func requestFor(object client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
}
