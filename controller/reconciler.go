package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"k8s.io/utils/keymutex"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"myproxy.dev/operator/api/v1alpha1"
	gatewayac "myproxy.dev/operator/applyconfigurations/api/v1alpha1"
)

// +kubebuilder:rbac:groups=gateway.myproxy.dev,resources=myproxies/status,verbs=patch

// lockCount is how many locks the fleets' names share: so many that two of the workers seldom meet at one. (By default it
// would be one for each CPU.)
const lockCount = 1024

// Reconciler makes the cluster match each MyProxy, and the MyProxy's status match the cluster.
type Reconciler struct {
	client client.Client // reads from the caches
	live   client.Reader // reads from the API server: only to meet an object that the caches can't show
	clock  clock.PassiveClock

	image  string // of nginx, where the spec names none
	memory memory
	names  keymutex.KeyMutex
}

// NewReconciler returns the reconciler of one operator. Objects that it reads with cached may be the cache's own: they are never
// changed. live reads from the API server. image is the nginx of MyProxies that name none.
func NewReconciler(cached client.Client, live client.Reader, clock clock.PassiveClock, image string) *Reconciler {
	return &Reconciler{
		client: cached, live: live, clock: clock, image: image,
		names: keymutex.NewHashed(lockCount),
	}
}

// Reconcile makes one pass over one MyProxy.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	proxy, err := getOrNil(ctx, r.client, req.NamespacedName, &v1alpha1.MyProxy{})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe the MyProxy: %w", err)
	}
	if proxy == nil { // its children are garbage collected
		r.memory.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	defer r.lock(proxy)()
	memory := r.memory.of(req.NamespacedName, proxy.UID)

	seen, err := r.observe(ctx, proxy, memory)
	if err != nil {
		return ctrl.Result{}, err
	}
	want := desire(proxy, r.image)
	done := r.apply(ctx, proxy, seen, want, memory)
	retryIn, err := r.report(ctx, proxy, status(proxy, done.seen, want, done.failures, r.clock.Now()), memory)

	if err = errors.Join(done.err(), err); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: soonest(done.retryIn(), retryIn)}, nil
}

// report applies the status, unless the memory says that it is there already. It returns after how long to try again what no
// event announces.
func (r *Reconciler) report(ctx context.Context, proxy *v1alpha1.MyProxy, status *gatewayac.MyProxyStatusApplyConfiguration, memory *fleetMemory) (time.Duration, error) {
	write := newStatusWrite(proxy, status)
	if retryIn, spared := memory.status.spares(write, proxy, r.clock.Now()); spared {
		return retryIn, nil
	}
	err := r.client.Status().Apply(ctx, write, client.FieldOwner(statusManager), client.ForceOwnership)
	switch {
	case apierrors.IsNotFound(err): // it went just now
		return 0, nil
	case err != nil && refusedForGood(err):
		return r.statusRefused(ctx, proxy, write, memory, err)
	case err != nil:
		return 0, fmt.Errorf("apply the status: %w", err)
	case write.answer.UID != proxy.UID: // deleted and made anew: the new one must not keep what the old one's was
		memory.status = statusRecord{superseded: true}
		return raceRetry, nil
	}
	memory.status = write.record(r.clock.Now())
	if write.answer.ResourceVersion != proxy.ResourceVersion {
		log.FromContext(ctx).Info("status", "ready", meta.IsStatusConditionTrue(write.answer.Status.Conditions, v1alpha1.ConditionReady),
			"pods", len(status.PodNames))
	}
	return 0, r.dropStale(ctx, &write.answer, status)
}

// statusRefused notes that the API server refuses this status: as a rule the CRD is older than the operator. The same one is tried again
// after one to five minutes.
func (r *Reconciler) statusRefused(ctx context.Context, proxy *v1alpha1.MyProxy, write *statusWrite, memory *fleetMemory, err error) (time.Duration, error) {
	var live v1alpha1.MyProxy
	if e := r.live.Get(ctx, client.ObjectKeyFromObject(proxy), &live); e == nil && stale(live.Status.Conditions, write.status) >= 0 {
		return raceRetry, r.dropStale(ctx, &live, write.status)
	}
	statusRefusals.Inc()
	log.FromContext(ctx).Error(err, "the API server refuses the status: is the CRD that of this operator?")
	retryIn := wait.Jitter(refusalRetry, refusalJitter)
	memory.status.intent, memory.status.retryAt = write.intent, r.clock.Now().Add(retryIn)
	return retryIn, nil
}

// dropStale removes a condition of our types that the status does not have: one that another manager wrote with Update before
// (or that `before-first-apply` owns), so that an apply without it leaves it there.
func (r *Reconciler) dropStale(ctx context.Context, live *v1alpha1.MyProxy, status *gatewayac.MyProxyStatusApplyConfiguration) error {
	i := stale(live.Status.Conditions, status)
	if i < 0 {
		return nil
	}
	patch := fmt.Sprintf(`[{"op":"test","path":"/metadata/resourceVersion","value":%q},{"op":"remove","path":"/status/conditions/%d"}]`,
		live.ResourceVersion, i)
	err := r.client.Status().Patch(ctx, live, client.RawPatch(types.JSONPatchType, []byte(patch)), client.FieldOwner(statusManager))
	if err != nil {
		return fmt.Errorf("remove a stale condition: %w", err)
	}
	return nil
}

// lock keeps two MyProxies that claim one fleet's name apart: two workers under one field manager would take each other's
// children.
func (r *Reconciler) lock(proxy *v1alpha1.MyProxy) (unlock func()) {
	key := types.NamespacedName{Namespace: proxy.Namespace, Name: fleetOf(proxy)}.String()
	r.names.LockKey(key)
	return func() { _ = r.names.UnlockKey(key) } // a hashed mutex always knows its key
}

// soonest is the shorter of two waits; zero is none.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
