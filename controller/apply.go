package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"myproxy.dev/operator/api/v1alpha1"
)

// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=gateway.myproxy.dev,resources=myproxies,verbs=get;list;watch
// +kubebuilder:rbac:groups=gateway.myproxy.dev,resources=myproxies/finalizers,verbs=update

// createOnly is a resourceVersion that no object has any more: the API server creates what is not there, and answers 409 where
// something is. So a stranger's object is met without a read before, which would be a race.
const createOnly = "1"

// applied is what came of the applies.
type applied struct {
	seen     observed // with the answers
	failures []*failure
	errs     []error // of what is not told in a condition
}

// apply makes the children as they are wanted, and deletes configurations that nothing names any more. Where a child is
// somebody else's, none is touched. One that could not be had stops only what needs it.
func (r *Reconciler) apply(ctx context.Context, proxy *v1alpha1.MyProxy, seen observed, want desired, memory *fleetMemory) applied {
	done := applied{seen: seen}
	if proxy.DeletionTimestamp != nil {
		return done
	}
	if seen.rival != nil {
		done.failures = append(done.failures, nameConflict(childID{kind: v1alpha1.SchemeGroupVersion.WithKind("MyProxy"), name: seen.rival.Name},
			fmt.Sprintf("MyProxy %s has the fleet name %s", seen.rival.Name, fleetOf(proxy))))
		return done
	}
	if isPaused(proxy) {
		return done
	}
	for _, c := range doubtfulFirst(want.children, proxy, &seen, memory) {
		if c.needs != nil && done.failed(*c.needs) {
			continue
		}
		live := done.seen.child(c.id)
		answer, failed := r.applyChild(ctx, proxy, c, live, memory)
		if failed != nil {
			done.failures = append(done.failures, failed)
			if failed.reason == v1alpha1.ReasonNameConflict {
				return done
			}
			continue
		}
		done.seen.see(answer)
		if live == nil {
			done.seen.lapseIn = soonest(done.seen.lapseIn, lapse)
		}
	}
	if len(done.failures) == 0 {
		done.errs = append(done.errs, r.prune(ctx, proxy, done.seen, want, memory))
		memory.prune(func(id childID) bool { return want.has(id) || done.seen.child(id) != nil })
	}
	return done
}

// doubtfulFirst puts what may be somebody else's before what is known to be ours: first a child that was, then those that are not
// known. So nothing is touched that is not all ours.
func doubtfulFirst(children []child, proxy *v1alpha1.MyProxy, seen *observed, memory *fleetMemory) []child {
	doubt := func(c child) int {
		if refused := memory.get(c.id).refused; refused != nil && refused.reason == v1alpha1.ReasonNameConflict {
			return 0
		}
		if live := seen.child(c.id); live == nil || !metav1.IsControlledBy(live, proxy) {
			return 1
		}
		return 2
	}
	return slices.SortedStableFunc(slices.Values(children), func(a, b child) int { return doubt(a) - doubt(b) })
}

// applyChild applies one child, unless the memory says what the API server would answer.
func (r *Reconciler) applyChild(ctx context.Context, proxy *v1alpha1.MyProxy, c child, live metav1.Object, memory *fleetMemory) (metav1.Object, *failure) {
	last, now := memory.get(c.id), r.clock.Now()
	if last.settled(c, live) {
		return live, nil
	}
	if last.holds(c, now) {
		again := *last.refused
		again.retryIn = last.retryAt.Sub(now)
		return nil, &again
	}
	answer, failed := r.send(ctx, proxy, c, live, last)
	if failed != nil {
		memory.put(c.id, last.failed(c, failed, r.clock.Now()))
		return nil, failed
	}
	memory.put(c.id, record{intent: c.intent, answer: answer, at: r.clock.Now()})
	if live == nil || live.GetResourceVersion() != answer.GetResourceVersion() {
		log.FromContext(ctx).Info("applied", "kind", c.id.kind.Kind, "name", c.id.name)
	}
	return answer, nil
}

// send applies one child: to the object of the uid that is known to be ours, so that nothing comes back that was just
// deleted, or else so that it can only be created.
func (r *Reconciler) send(ctx context.Context, proxy *v1alpha1.MyProxy, c child, live metav1.Object, last record) (metav1.Object, *failure) {
	if live == nil {
		if last.gone != "" && !r.alive(ctx, proxy) {
			return nil, &failure{child: c.id, retryIn: raceRetry} // it was garbage collected
		}
		answer, err := r.patch(ctx, c, "", createOnly)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return answer, failureOf(c.id, err)
		}
	}
	var uid types.UID
	if live != nil && metav1.IsControlledBy(live, proxy) {
		uid = live.GetUID()
	} else {
		var failed *failure
		if uid, failed = r.claim(ctx, proxy, c); failed != nil {
			return nil, failed
		}
	}
	answer, err := r.patch(ctx, c, uid, "")
	return answer, failureOf(c.id, err)
}

func (r *Reconciler) patch(ctx context.Context, c child, uid types.UID, resourceVersion string) (metav1.Object, error) {
	config := c.config.DeepCopy() // the answer is written into it
	if uid != "" {
		config.SetUID(uid)
	}
	if resourceVersion != "" {
		config.SetResourceVersion(resourceVersion)
	}
	err := r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(config), client.FieldOwner(childManager), client.ForceOwnership)
	if err != nil {
		return nil, err
	}
	return strippedAnswer(config)
}

// claim is the uid of an object that is there, if it is this MyProxy's, or if it may be adopted.
func (r *Reconciler) claim(ctx context.Context, proxy *v1alpha1.MyProxy, c child) (types.UID, *failure) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(c.id.kind)
	err := r.live.Get(ctx, types.NamespacedName{Namespace: proxy.Namespace, Name: c.id.name}, object)
	switch {
	case apierrors.IsNotFound(err): // it went just now
		return "", &failure{child: c.id, retryIn: raceRetry}
	case err != nil:
		return "", failureOf(c.id, err)
	case metav1.IsControlledBy(object, proxy):
		return object.UID, nil
	case !adoptable(object, fleetOf(proxy)):
		return "", nameConflict(c.id, fmt.Sprintf("%s is there and belongs to somebody else", c.id))
	case !r.alive(ctx, proxy): // it was orphaned by the deletion of this very MyProxy
		return "", &failure{child: c.id, retryIn: raceRetry}
	default:
		return object.UID, nil
	}
}

// alive asks the API server whether the MyProxy is still there: the cache may show one that is gone, and its children must not
// come back or get their dead owner back. Where there is no answer it is not known to be.
func (r *Reconciler) alive(ctx context.Context, proxy *v1alpha1.MyProxy) bool {
	var now v1alpha1.MyProxy
	err := r.live.Get(ctx, client.ObjectKeyFromObject(proxy), &now)
	return err == nil && now.UID == proxy.UID && now.DeletionTimestamp == nil
}

// prune deletes the fleet's configurations that neither the intent, the Deployment's template, a ReplicaSet nor a pod names.
// It waits until the Deployment controller has seen the Deployment: before, a ReplicaSet may be about to be made.
func (r *Reconciler) prune(ctx context.Context, proxy *v1alpha1.MyProxy, seen observed, want desired, memory *fleetMemory) error {
	if seen.deployment == nil || seen.deployment.Status.ObservedGeneration < seen.deployment.Generation {
		return nil
	}
	used := configsInUse(seen, want)
	var errs []error
	for _, configMap := range seen.configMaps {
		id := childID{kind: kindConfigMap, name: configMap.Name}
		if used[configMap.Name] || !metav1.IsControlledBy(configMap, proxy) || memory.get(id).gone == configMap.UID {
			continue
		}
		err := r.client.Delete(ctx, configMap, client.Preconditions{UID: &configMap.UID})
		if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("delete %s: %w", id, err))
			continue
		}
		memory.goes(id, configMap.UID)
		log.FromContext(ctx).Info("deleted", "kind", id.kind.Kind, "name", id.name)
	}
	return errors.Join(errs...)
}

// failed tells whether a child could not be had.
func (a *applied) failed(id childID) bool {
	return slices.ContainsFunc(a.failures, func(f *failure) bool { return f.child == id })
}

// err is what to retry with exponential backoff.
func (a *applied) err() error {
	errs := a.errs
	for _, f := range a.failures {
		errs = append(errs, f.err)
	}
	return errors.Join(errs...)
}

// retryIn is when to try again what no event announces.
func (a *applied) retryIn() time.Duration {
	first := a.seen.lapseIn
	for _, f := range a.failures {
		first = soonest(first, f.retryIn)
	}
	return first
}
