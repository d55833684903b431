package controller

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"myproxy.dev/operator/api/v1alpha1"
)

// rival is the MyProxy that has the fleet's name, where that is not this one: who controls the Deployment keeps it, else the
// older has it, then the one with the smaller uid. claims are all that claim the name, this one among them.
func rival(proxy *v1alpha1.MyProxy, claims []v1alpha1.MyProxy, deployment metav1.Object) *v1alpha1.MyProxy {
	first := proxy
	for i := range claims {
		claim := &claims[i]
		if claim.UID == proxy.UID {
			continue
		}
		if deployment != nil && metav1.IsControlledBy(deployment, claim) {
			return claim
		}
		if claim.DeletionTimestamp == nil && before(claim, first) {
			first = claim
		}
	}
	if first == proxy || deployment != nil && metav1.IsControlledBy(deployment, proxy) {
		return nil
	}
	return first
}

func before(a, b *v1alpha1.MyProxy) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.UID < b.UID
}

// adoptable tells whether an object is one of this operator's that lost its owner (`kubectl delete --cascade=orphan`): no
// controller, our labels, and an Apply of our manager.
func adoptable(object metav1.Object, fleet string) bool {
	if metav1.GetControllerOfNoCopy(object) != nil {
		return false
	}
	for key, value := range childLabels(fleet) {
		if object.GetLabels()[key] != value {
			return false
		}
	}
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == childManager && entry.Operation == metav1.ManagedFieldsOperationApply {
			return true
		}
	}
	return false
}
