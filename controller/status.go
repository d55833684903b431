package controller

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"myproxy.dev/operator/api/v1alpha1"
	gatewayac "myproxy.dev/operator/applyconfigurations/api/v1alpha1"
)

// maxUnavailablePods bounds status.unavailablePods: a fleet's pods fail alike.
const maxUnavailablePods = 10

// status is what the MyProxy's status should say, of what was observed, what is wanted, and what could not be had.
func status(proxy *v1alpha1.MyProxy, seen observed, want desired, failures []*failure, now time.Time) *gatewayac.MyProxyStatusApplyConfiguration {
	fleet := members(proxy, seen, want.templateHash)
	out := gatewayac.MyProxyStatus().
		WithObservedGeneration(proxy.Generation).
		WithReplicas(count(fleet.pods)).
		WithUpdatedReplicas(count(fleet.updated)).
		WithReadyReplicas(countReady(fleet.pods)).
		WithSelector(selector(fleetOf(proxy))).
		WithConfigHash(want.configHash).
		WithPodNames(fleet.names...).
		WithAddresses(addresses(proxy, seen.service)...)
	view := view{proxy: proxy, seen: seen, want: want, fleet: fleet, failures: failures}
	for _, pod := range view.unavailable() {
		entry := gatewayac.UnavailablePod().WithName(pod.name).WithReason(pod.reason)
		if pod.message != "" {
			entry.WithMessage(pod.message)
		}
		out.WithUnavailablePods(entry)
		if len(out.UnavailablePods) == maxUnavailablePods {
			break
		}
	}
	for _, c := range view.conditions(now) {
		out.WithConditions(metav1ac.Condition().
			WithType(c.Type).WithStatus(c.Status).WithReason(c.Reason).WithMessage(c.Message).
			WithObservedGeneration(c.ObservedGeneration).WithLastTransitionTime(c.LastTransitionTime))
	}
	return out
}

// membership is the fleet's pods that have not finished.
type membership struct {
	names   []string   // all, terminating ones too, sorted
	pods    []podState // those that are not terminating, sorted by name
	updated []podState // those of pods that are of the template that is wanted
}

// members are the pods whose controller is a ReplicaSet whose controller is the Deployment whose controller is the MyProxy,
// each by uid. A label is a hint, never proof.
func members(proxy *v1alpha1.MyProxy, seen observed, templateHash string) membership {
	var all membership
	if seen.deployment == nil || !metav1.IsControlledBy(seen.deployment, proxy) {
		return all
	}
	revisions := map[types.UID]int64{}
	newest := int64(-1) // the highest revision among the ReplicaSets of the template that is wanted
	for i := range seen.replicaSets {
		set := &seen.replicaSets[i]
		if !metav1.IsControlledBy(set, seen.deployment) {
			continue
		}
		revisions[set.UID] = revisionOf(set)
		if set.Labels[labelTemplate] == templateHash {
			newest = max(newest, revisions[set.UID])
		}
	}
	for _, pod := range seen.pods {
		revision, ours := revisions[pod.replicaSet]
		if !ours || pod.finished {
			continue
		}
		all.names = append(all.names, pod.name)
		if pod.terminating {
			continue
		}
		all.pods = append(all.pods, pod)
		if pod.template == templateHash && revision == newest {
			all.updated = append(all.updated, pod)
		}
	}
	slices.Sort(all.names)
	byName := func(a, b podState) int { return cmp.Compare(a.name, b.name) }
	slices.SortFunc(all.pods, byName)
	slices.SortFunc(all.updated, byName)
	return all
}

// revisionOf is the ReplicaSet's revision; 0, while it has none.
func revisionOf(set metav1.Object) int64 {
	revision, _ := strconv.ParseInt(set.GetAnnotations()[annotationRevision], 10, 64)
	return revision
}

func addresses(proxy *v1alpha1.MyProxy, service *corev1.Service) []*gatewayac.AddressApplyConfiguration {
	if service == nil || !metav1.IsControlledBy(service, proxy) {
		return nil
	}
	var all []*gatewayac.AddressApplyConfiguration
	for _, ip := range service.Spec.ClusterIPs {
		if ip != corev1.ClusterIPNone {
			all = append(all, gatewayac.Address().WithType(v1alpha1.AddressIP).WithValue(ip))
		}
	}
	return all
}

func count(pods []podState) int32 { return int32(len(pods)) }

func countReady(pods []podState) (ready int32) {
	for _, pod := range pods {
		if pod.ready {
			ready++
		}
	}
	return ready
}
